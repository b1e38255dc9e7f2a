// Charts drawn by hand in SVG. Each says in words what it shows, and shows more than colour where kinds differ.

import { compact, day, fill, h, hour, icon, isNone, s } from "./dom.js";
function nice(most) {
  if (most <= 0) return 1;
  const step = 10 ** Math.floor(Math.log10(most));
  return [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((one) => one * step).find((one) => one >= most);
}

/**
 * Draw stacked bars over time.
 * points: [{at, …numbers}], oldest first. kinds: [{key, label, name}] from the bottom; `name` is the colour's class.
 * lines: draws a line each instead of stacked bars. show: writes a value. full: where the axis ends, if not by the points.
 * pick(from, to): called with the times of the first and last point that were dragged over, or clicked on.
 */
export function series(points, kinds, { label, height = 180, show = compact, lines = false, full = 0, pick = null } = {}) {
  const box = h("div.chart-box");
  const tip = h("div.tip", { hidden: true });
  const totals = kinds.map((kind) => points.reduce((sum, point) => sum + (point[kind.key] || 0), 0));
  const legend = h("ul.legend", kinds.map((kind, index) => h("li", h(`span.key.${kind.name}`, { "aria-hidden": "true" }), kind.label, h("b", lines ? (points.at(-1)?.[kind.key] === null ? "–" : show(points.at(-1)?.[kind.key] ?? 0)) : show(totals[index])))));
  const figure = h("figure.chart", { role: "group", "aria-label": label }, legend, box, tip);
  const long = points.length > 1 && new Date(points.at(-1).at) - new Date(points[0].at) > 2 * 86400000;
  const when = (at) => (long ? day : hour).format(new Date(at));
  const spoken = `${label}. ${kinds.map((kind, index) => `${kind.label}: ${show(totals[index])} in all, at most ${show(Math.max(0, ...points.map((point) => point[kind.key] || 0)))} at once`).join("; ")}.`;

  function draw(width) {
    const sums = points.map((point) => (lines ? Math.max(0, ...kinds.map((kind) => point[kind.key] || 0)) : kinds.reduce((sum, kind) => sum + (point[kind.key] || 0), 0)));
    const most = full || nice(Math.max(0, ...sums));
    const left = Math.max(28, ...[0.5, 1].map((share) => show(most * share).length * 6.5 + 10)), bottom = 20, top = 6, plot = height - bottom - top, across = Math.max(10, width - left - 4);
    const slot = across / Math.max(1, points.length);
    const y = (value) => top + plot - (value / most) * plot;
    const parts = [];
    for (const share of [0, 0.5, 1]) {
      parts.push(s("line", { class: "grid", x1: left, x2: width - 4, y1: y(most * share), y2: y(most * share) }));
      parts.push(s("text", { class: "axis", x: left - 6, y: y(most * share) + 4, "text-anchor": "end" }, show(most * share)));
    }
    const marks = points.map((_, index) => index).filter((index) => !long || !index || when(points[index].at) !== when(points[index - 1].at));
    const gap = Math.max(1, Math.ceil(marks.length / Math.max(2, Math.floor(across / 76))));
    for (const index of marks.filter((_, number) => number % gap === 0 && (!long || number || marks.length < 3))) {
      parts.push(s("text", { class: "axis", x: left + slot * (index + 0.5), y: height - 4, "text-anchor": slot * (index + 0.5) < 20 ? "start" : slot * (index + 0.5) > across - 20 ? "end" : "middle" }, when(points[index].at)));
    }
    if (lines) {
      for (const kind of kinds) {
        const known = points.map((point, index) => [left + slot * (index + 0.5), point[kind.key]]).filter(([, value]) => value !== null && value !== undefined);
        if (!known.length) continue;
        const way = known.map(([x, value], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y(value).toFixed(1)}`).join("");
        if (known.length > 1) parts.push(s("path", { class: `area ${kind.name}`, d: `${way}L${known.at(-1)[0]} ${y(0)}L${known[0][0]} ${y(0)}Z` }));
        parts.push(s("path", { class: `line ${kind.name}`, d: way }));
        if (known.length === 1) parts.push(s("circle", { class: `spot ${kind.name}`, cx: known[0][0], cy: y(known[0][1]), r: 3 }));
      }
    } else {
      for (const kind of kinds) {
        const below = kinds.slice(0, kinds.indexOf(kind));
        const way = points.map((point, index) => {
          const value = point[kind.key] || 0;
          if (!value) return "";
          const base = below.reduce((sum, one) => sum + (point[one.key] || 0), 0);
          const wide = Math.max(1, Math.min(slot - (slot > 5 ? 2 : 0.5), 28));
          const x = left + slot * (index + 0.5) - wide / 2;
          return `M${x.toFixed(1)} ${y(base).toFixed(1)}h${wide.toFixed(1)}V${y(base + value).toFixed(1)}h-${wide.toFixed(1)}Z`;
        }).join("");
        if (way) parts.push(s("path", { class: `fill ${kind.name}`, d: way }));
      }
    }
    const hair = s("line", { class: "hair", y1: top, y2: top + plot, visibility: "hidden" });
    const swept = s("rect", { class: "swept", y: top, height: plot, visibility: "hidden" });
    const image = s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": spoken }, parts, swept, hair);
    const at = (event) => Math.max(0, Math.min(points.length - 1, Math.floor((event.offsetX - left) / slot)));
    let held = null;
    if (pick) {
      image.classList.add("sweep");
      image.addEventListener("pointerdown", (event) => { held = at(event); image.setPointerCapture(event.pointerId); });
      image.addEventListener("pointerup", (event) => { if (held === null) return; const ends = [held, at(event)].sort((a, b) => a - b); held = null; pick(points[ends[0]].at, points[ends[1]].at); });
    }
    image.addEventListener("pointermove", (event) => {
      const index = Math.floor((event.offsetX - left) / slot);
      if (held !== null) {
        const [from, to] = [held, at(event)].sort((a, b) => a - b);
        for (const [name, value] of Object.entries({ x: left + slot * from, width: slot * (to - from + 1), visibility: "visible" })) swept.setAttribute(name, value);
      }
      const point = points[index];
      tip.hidden = !point;
      hair.setAttribute("visibility", point ? "visible" : "hidden");
      if (!point) return;
      const x = left + slot * (index + 0.5);
      hair.setAttribute("x1", x);
      hair.setAttribute("x2", x);
      fill(tip, h("b", `${day.format(new Date(point.at))} ${hour.format(new Date(point.at))}`), kinds.map((kind) => h("div", h(`span.key.${kind.name}`), kind.label, h("b", show(point[kind.key] || 0)))));
      tip.style.setProperty("left", `${Math.min(Math.max(x, 80), width - 80)}px`);
    });
    image.addEventListener("pointerleave", () => { tip.hidden = true; hair.setAttribute("visibility", "hidden"); });
    fill(box, image);
  }
  let drawn = 0;
  new ResizeObserver(([entry]) => {
    const width = Math.round(entry.contentRect.width);
    if (width > 40 && width !== drawn) { drawn = width; draw(width); }
  }).observe(box);
  box.style.setProperty("min-height", `${height}px`);
  return figure;
}

const point = (share, radius) => { const angle = Math.PI * (1 - share); return `${(60 + radius * Math.cos(angle)).toFixed(2)} ${(58 - radius * Math.sin(angle)).toFixed(2)}`; };

/** Draw a dial of 0 to 100. value: null when there is none yet. kind: good, soso or bad. word: what the value means. */
export function dial(value, { label, word, kind = "none" }) {
  const share = Math.max(0, Math.min(1, (value ?? 0) / 100));
  return h("div.dial", s("svg", { viewBox: "0 0 120 66", role: "img", "aria-label": `${label}: ${isNone(value) ? "not known yet" : `${value} of 100, ${word}`}` },
    s("path", { class: "dial-track", d: `M${point(0, 50)}A50 50 0 0 1 ${point(1, 50)}` }),
    share > 0 && s("path", { class: `dial-value ${kind}`, d: `M${point(0, 50)}A50 50 0 0 1 ${point(share, 50)}` }),
    s("text", { class: "dial-number", x: 60, y: 52, "text-anchor": "middle" }, value ?? "–")), h("div.dial-word", icon(kind === "bad" ? "high" : kind === "good" ? "ALLOW" : "medium", kind), word));
}

/** Draw bars with names: [{label, value, href, note, name}]. */
export function bars(list, { show = compact, label } = {}) {
  const most = Math.max(1, ...list.map((one) => one.value));
  return h("ul.bars", { "aria-label": label }, list.map((one) => {
    const bar = h(`span.bar-fill${one.name ? `.${one.name}` : ""}`);
    bar.style.setProperty("width", `${(one.value / most) * 100}%`);
    return h("li", h("div.bar-line", one.href ? h("a.cut", { href: one.href, title: one.label }, one.label) : h("span.cut", { title: one.label }, one.label), h("b", show(one.value))), h("div.bar-track", { "aria-hidden": "true" }, bar), one.note && h("div.dim.small", one.note));
  }));
}

/** Draw a share of a whole, such as of a budget. marks: where a limit stands, 0 to 1. */
export function meter(share, { label, kind = "good", mark }) {
  const bar = h(`span.meter-fill.${kind}`), track = h("span.meter", { role: "meter", "aria-label": label, "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": String(Math.round(Math.min(1, share) * 100)) }, bar);
  bar.style.setProperty("width", `${Math.min(1, Math.max(0, share)) * 100}%`);
  if (mark) { const line = h("span.meter-mark"); line.style.setProperty("left", `${mark * 100}%`); track.append(line); }
  return track;
}
