// Charts drawn by hand in SVG. Each says in words what it shows, and shows more than colour where kinds differ.

import { compact, day, fill, h, hour, isNone, put, s } from "./dom.js";
function nice(most) {
  if (most <= 0) return 1;
  const step = 10 ** Math.floor(Math.log10(most));
  return [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((one) => one * step).find((one) => one >= most);
}

/**
 * Draw stacked bars over time.
 * points: [{at, …numbers}], oldest first. kinds: [{key, label, name}] from the bottom; `name` is the colour's class.
 * lines: draws a line each instead of stacked bars. show: writes a value. full: where the axis ends, if not by the points.
 * pick(since, until): called with the time of the bars that were clicked on, dragged over, or chosen by keyboard.
 */
export function series(points, kinds, { label, height = 180, show = compact, lines = false, full = 0, pick = null } = {}) {
  const box = h("div.chart-box");
  const tip = h("div.tip", { hidden: true });
  const value = (point, kind) => point[kind.key] || 0;
  const totals = kinds.map((kind) => points.reduce((sum, point) => sum + value(point, kind), 0));
  const legend = h("ul.legend", kinds.map((kind, index) => h("li", h(`span.key.${kind.name}`, { "aria-hidden": "true" }), kind.label, h("b", lines ? (points.at(-1)?.[kind.key] === null ? "–" : show(points.at(-1)?.[kind.key] ?? 0)) : show(totals[index])))));
  const figure = h("figure.chart", { role: "group", "aria-label": label }, legend, box, tip);
  const begins = points.map((point) => new Date(point.at).getTime()), step = begins[1] - begins[0];
  const long = begins.at(-1) - begins[0] > 2 * 86400000;
  const when = (at) => (long ? day : hour).format(at), whole = (at) => `${day.format(at)} ${hour.format(at)}`;
  const spoken = `${label}. ${kinds.map((kind, index) => `${kind.label}: ${show(totals[index])} in all, at most ${show(Math.max(0, ...points.map((point) => value(point, kind))))} at once`).join("; ")}.`;
  let chosen = points.length - 1, mark = () => {};
  const open = (from, to) => pick(...[begins[from], begins[to] + step - 1].map((at) => new Date(at).toISOString()));

  function draw(width) {
    const sums = points.map((point) => kinds.map((kind) => value(point, kind)).reduce((sum, one) => (lines ? Math.max(sum, one) : sum + one), 0));
    const most = full || nice(Math.max(0, ...sums));
    const left = Math.max(28, ...[0.5, 1].map((share) => show(most * share).length * 6.5 + 10)), bottom = 20, top = 6, plot = height - bottom - top, across = Math.max(10, width - left - 4);
    const slot = across / Math.max(1, points.length);
    const x = (index) => left + slot * (index + 0.5), y = (value) => top + plot - (value / most) * plot;
    const parts = [];
    for (const share of [0, 0.5, 1]) {
      parts.push(s("line", { class: "grid", x1: left, x2: width - 4, y1: y(most * share), y2: y(most * share) }));
      parts.push(s("text", { class: "axis", x: left - 6, y: y(most * share) + 4, "text-anchor": "end" }, show(most * share)));
    }
    const marks = begins.map((_, index) => index).filter((index) => !long || !index || when(begins[index]) !== when(begins[index - 1]));
    const gap = Math.max(1, Math.ceil(marks.length / Math.max(2, Math.floor(across / 76))));
    for (const index of marks.filter((_, number) => number % gap === 0 && (!long || number || marks.length < 3))) {
      parts.push(s("text", { class: "axis", x: x(index), y: height - 4, "text-anchor": x(index) < left + 20 ? "start" : x(index) > left + across - 20 ? "end" : "middle" }, when(begins[index])));
    }
    if (lines) {
      for (const kind of kinds) {
        const known = points.map((point, index) => [x(index), point[kind.key]]).filter(([, value]) => !isNone(value));
        if (!known.length) continue;
        const way = known.map(([x, value], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y(value).toFixed(1)}`).join("");
        if (known.length > 1) parts.push(s("path", { class: `area ${kind.name}`, d: `${way}L${known.at(-1)[0]} ${y(0)}L${known[0][0]} ${y(0)}Z` }));
        parts.push(s("path", { class: `line ${kind.name}`, d: way }));
        if (known.length === 1) parts.push(s("circle", { class: `spot ${kind.name}`, cx: known[0][0], cy: y(known[0][1]), r: 3 }));
      }
    } else {
      const wide = Math.max(1, Math.min(slot - (slot > 5 ? 2 : 0.5), 28)), below = points.map(() => 0);
      for (const kind of kinds) {
        const way = points.map((point, index) => {
          const from = below[index], to = (below[index] += value(point, kind));
          return from === to ? "" : `M${(x(index) - wide / 2).toFixed(1)} ${y(from).toFixed(1)}h${wide.toFixed(1)}V${y(to).toFixed(1)}h-${wide.toFixed(1)}Z`;
        }).join("");
        if (way) parts.push(s("path", { class: `fill ${kind.name}`, d: way }));
      }
    }
    const hair = s("line", { class: "hair", y1: top, y2: top + plot, visibility: "hidden" });
    const swept = s("rect", { class: "swept", y: top, height: plot, visibility: "hidden" });
    const image = s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": spoken }, parts, swept, hair);
    /** Show what one point says; without one, hide it. */
    mark = (index) => {
      const point = points[index];
      tip.hidden = !point;
      put(hair, { visibility: point ? "visible" : "hidden", x1: x(index), x2: x(index) });
      if (!point) return;
      fill(tip, h("b", whole(begins[index])), kinds.map((kind) => h("div", h(`span.key.${kind.name}`), kind.label, h("b", show(value(point, kind))))));
      tip.style.setProperty("left", `${Math.min(Math.max(x(index), 80), width - 80)}px`);
    };
    const at = (event) => Math.max(0, Math.min(points.length - 1, Math.floor((event.offsetX - left) / slot)));
    let held = null;
    const ends = (event) => [held, at(event)].sort((a, b) => a - b);
    if (pick) {
      image.classList.add("sweep");
      image.addEventListener("pointerdown", (event) => { held = at(event); image.setPointerCapture(event.pointerId); });
      image.addEventListener("pointerup", (event) => { if (held === null) return; const [from, to] = ends(event); held = null; open(from, to); });
    }
    image.addEventListener("pointermove", (event) => {
      if (held !== null) { const [from, to] = ends(event); put(swept, { x: left + slot * from, width: slot * (to - from + 1), visibility: "visible" }); }
      mark(Math.floor((event.offsetX - left) / slot));
    });
    image.addEventListener("pointerleave", () => mark(-1));
    fill(box, image);
  }

  /** Let the arrow keys go from bar to bar, and Enter open one. */
  function steered() {
    const choose = (index) => {
      chosen = Math.max(0, Math.min(points.length - 1, index));
      mark(chosen);
      put(box, { "aria-valuenow": chosen + 1, "aria-valuetext": `${whole(begins[chosen])}: ${kinds.map((kind) => `${kind.label} ${show(value(points[chosen], kind))}`).join(", ")}` });
    };
    put(box, { role: "slider", tabindex: 0, "aria-label": `${label}: arrow keys choose a bar, Enter opens its requests`, "aria-valuemin": 1, "aria-valuemax": points.length,
      onblur: () => mark(-1), onfocus: () => box.matches(":focus-visible") && choose(chosen),
      onkeydown(event) {
        const way = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, Home: -points.length, End: points.length }[event.key];
        if (!way && event.key !== "Enter") return;
        event.preventDefault();
        event.stopPropagation(); // the list of the page has keys of its own
        if (way) choose(chosen + way); else open(chosen, chosen);
      } });
    choose(chosen);
  }
  if (pick && points.length > 1) steered();
  let drawn = 0;
  new ResizeObserver(([entry]) => {
    const width = Math.round(entry.contentRect.width);
    if (width > 40 && width !== drawn) { drawn = width; draw(width); }
  }).observe(box);
  box.style.setProperty("min-height", `${height}px`);
  return figure;
}

const VERDICTS = [{ key: "allowed", label: "Allowed", name: "allow" }, { key: "reviews", label: "For review", name: "review" }, { key: "blocks", label: "Blocked", name: "block" }];
/** Draw the requests of a summary by their verdict, as `series` does. */
export const verdicts = (summary, more) => series(summary.series.map((one) => ({ ...one, allowed: one.requests - one.blocks - one.reviews })), VERDICTS, more);

/** Draw how a number went, beside the number and its name. null: a gap. */
export function spark(values) {
  const most = Math.max(0, ...values) || 1;
  const way = values.map((value, index) => (isNone(value) ? "" : `${index && !isNone(values[index - 1]) ? "L" : "M"}${index} ${(23 - (value / most) * 22).toFixed(1)}`)).join("");
  return s("svg", { class: "spark one", viewBox: `0 0 ${values.length - 1} 24`, preserveAspectRatio: "none", "aria-hidden": "true" }, s("path", { class: "line", d: way, "vector-effect": "non-scaling-stroke" }));
}

const SCORES = {
  posture: ["Posture", "How securely this gateway is set up, by its trust audit. Higher is better.", [[80, "good", "one"], [50, "fair", "soso"], [0, "poor", "bad"]]],
  threat: ["Threat", "What happened in the last 24 hours. Lower is better.", [[76, "severe", "bad"], [51, "high", "bad"], [26, "raised", "soso"], [0, "low", "one"]]],
};
/** Show a score of 0 to 100 with what it means, and a gauge once there is a value. name: posture or threat. */
export function score(name, value) {
  const [label, hint, steps] = SCORES[name];
  const [, word, kind] = isNone(value) ? [] : steps.find(([least]) => value >= least);
  return h("div", h("h3", label), h("p", h("b.score", value ?? "–"), h("span.dim", word ? ` of 100, ${word}` : " not known yet")), word && meter(value / 100, { label: `${label} score`, kind }), h("p.hint", hint));
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
