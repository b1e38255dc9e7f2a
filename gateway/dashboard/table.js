// Tables: of rows that are all there (sorted and cut here) or of pages that are asked for with a cursor.

import { h, fill, icon } from "./dom.js";
import { button, empty, loading, trouble } from "./ui.js";

const PAGE = 50;

/**
 * Make a table.
 * columns: [{label, cell(row), sort(row)?, align?, low?}]; `low` columns give way on narrow screens.
 * rows: all of them, or load(cursor): {items, next}. href(row): where its first cell leads. none: said when empty.
 * tools(row): buttons at its end. keys: {letter: act(row)}. mark(row): a class. bulk(ids): buttons for the rows that are
 * ticked; without it none can be. Returns {node, reload, set, current}.
 */
export function table({ label, columns, rows, load, href, tools, keys = {}, none = "Nothing here yet.", mark, bulk, size = PAGE, sorted = null }) {
  let all = rows || [], shown = [], place = 0, next = null, order = sorted, busy = 0;
  const cursors = [undefined], ticked = new Set(), bar = h("div.bulk", { role: "status" });
  const head = h("tr"), body = h("tbody"), foot = h("div.pager"), state = h("div");
  const grid = h(`table${href && tools ? ".linked" : ""}`, { "aria-label": label }, h("thead", head), body);
  const node = h("div.table", bar, h("div.table-scroll", { tabindex: "-1" }, grid), state, foot);

  function drawHead() {
    const every = (event) => { for (const row of shown) { if (event.target.checked) ticked.add(row.id); else ticked.delete(row.id); } draw(); };
    fill(head, bulk && h("th.tick", { scope: "col" }, h("input", { type: "checkbox", "aria-label": "Select all on this page", onchange: every })), columns.map((column, index) => {
      const direction = order && order.index === index ? (order.down ? "descending" : "ascending") : null;
      const name = column.sort && !load
        ? h("button.sort", { type: "button", onclick: () => { order = { index, down: direction === "ascending" }; place = 0; draw(); drawHead(); head.children[index + (bulk ? 1 : 0)].firstChild.focus(); } },
          column.label, h("span.sort-mark", { "aria-hidden": "true" }, direction ? (order.down ? "↓" : "↑") : "↕"))
        : column.label;
      return h("th", { scope: "col", class: kind(column), "aria-sort": direction }, name);
    }), tools && h("th", { scope: "col", class: "tool" }, h("span.sr", "Actions")));
  }

  function kind(column) {
    return [column.align === "end" && "end", column.low && `low${column.low}`, column.wide && "wide"].filter(Boolean).join(" ") || null;
  }

  function line(row) {
    const cells = columns.map((column, index) => {
      const inside = column.cell(row);
      const linked = index === 0 && href && href(row);
      return h("td", { class: kind(column), data: { label: column.label } }, linked ? h("a.row", { href: linked, tabindex: "-1" }, inside) : inside);
    });
    const tick = bulk && h("td.tick", h("input", { type: "checkbox", "aria-label": "Select", checked: ticked.has(row.id), onchange: (event) => { if (event.target.checked) ticked.add(row.id); else ticked.delete(row.id); drawBar(); } }));
    const node = h("tr", { class: [href && "open", mark && mark(row)].filter(Boolean).join(" ") || null }, tick, cells, tools && h("td.tool", tools(row)));
    node.row = row;
    if (href) node.addEventListener("click", (event) => { if (!event.target.closest("a,button,input,select") && !String(getSelection())) node.querySelector("a.row").click(); });
    return node;
  }

  function drawBar() {
    const ids = [...ticked];
    fill(bar, ids.length > 0 && [h("b", `${ids.length} selected`), bulk(ids), button("Clear", untick, { kind: "quiet" })]);
  }

  function untick() {
    ticked.clear();
    draw();
    const all = head.querySelector(".tick input");
    if (all) all.checked = false;
  }

  function draw() {
    if (!load) {
      const sort = order && columns[order.index].sort;
      const list = sort ? [...all].sort((one, other) => { const [a, b] = [sort(one), sort(other)]; return (a < b ? -1 : a > b ? 1 : 0) * (order.down ? -1 : 1); }) : all;
      shown = list.slice(place * size, (place + 1) * size);
      next = list.length > (place + 1) * size ? true : null;
    }
    fill(body, shown.map(line));
    if (bulk) drawBar();
    const first = body.querySelector("a.row");
    if (first) first.tabIndex = 0;
    fill(state, shown.length ? null : typeof none === "string" ? empty(none) : none());
    grid.hidden = !shown.length;
    const from = place * size + 1;
    fill(foot, place || next ? [
      h("span.dim", load ? `${from}–${from + shown.length - 1}` : `${from}–${from + shown.length - 1} of ${all.length}`),
      button("Previous", () => turn(-1), { sign: "back", disabled: !place }),
      button("Next", () => turn(1), { sign: "next", disabled: !next }),
    ] : null);
  }

  async function turn(step) {
    place += step;
    if (load) await fetchPage();
    else draw();
    node.scrollIntoView({ block: "nearest" });
    (body.querySelector("a.row") || foot).focus?.();
  }

  async function fetchPage() {
    const ticket = ++busy;
    if (!body.childElementCount) fill(state, loading());
    node.setAttribute("aria-busy", "true");
    try {
      const page = await load(cursors[place]);
      if (ticket !== busy) return;
      shown = page.items;
      next = page.next;
      if (next) cursors[place + 1] = next;
      const held = document.activeElement?.closest?.("tr");
      const at = held && body.contains(held) ? [...body.children].indexOf(held) : -1;
      draw();
      if (at >= 0) step(at);
    } catch (error) {
      if (error.name !== "AbortError" && ticket === busy) { if (!error.advice && error.advice !== "") console.error(error); grid.hidden = true; fill(body); fill(foot); fill(state, trouble(error, fetchPage)); }
    } finally { if (ticket === busy) node.removeAttribute("aria-busy"); }
  }

  function step(index) {
    const links = [...body.querySelectorAll("a.row")];
    const link = links[Math.max(0, Math.min(index, links.length - 1))];
    if (!link) return;
    for (const one of links) one.tabIndex = one === link ? 0 : -1;
    link.focus();
    link.closest("tr").scrollIntoView({ block: "nearest" });
  }

  node.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input,select,textarea,button")) return;
    press(event);
  });

  /** Do what a key means here; the page may hand over keys that were pressed outside of the table. */
  function press(event) {
    const rowsNow = [...body.children];
    const at = rowsNow.findIndex((one) => one.contains(document.activeElement));
    const move = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (move) { event.preventDefault(); step(at < 0 ? 0 : at + move); return true; }
    if (keys[event.key] && at >= 0) { event.preventDefault(); keys[event.key](rowsNow[at].row); return true; }
    return false;
  }

  drawHead();
  if (load) fetchPage();
  else draw();
  return {
    node,
    press,
    untick,
    /** Ask from the first page on, as other filters want it. */
    restart() { place = 0; cursors.length = 1; return load ? fetchPage() : draw(); },
    reload: () => (load ? fetchPage() : draw()),
    set(list) { all = list; place = Math.min(place, Math.max(0, Math.ceil(list.length / size) - 1)); draw(); },
    get isFirst() { return place === 0; },
    get current() { return shown; },
  };
}

/** A column whose text is as sent, cut where it is too long. */
export const cut = (text, title) => h("span.cut", { title: title ?? text ?? "" }, text ?? "–");
export { icon };
