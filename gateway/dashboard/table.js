// Tables: of rows that are all there (sorted and cut here) or of a list of the gateway (sorted there, read page by page).

import { api, save } from "./api.js";
import { choose, chosen } from "./columns.js";
import { csv } from "./csv.js";
import { h, fill, number } from "./dom.js";
import { button, empty, loading, toast, trouble, words } from "./ui.js";

const PAGE = 50, MOST_SAVED = 10000;
/**
 * Make a table. columns: [{label, cell(row), sort(row)?, by?, align?, low?}]; `low` columns give way on narrow screens. A column `of` a
 * field shows it `as` a function does, under its name; its sort may be true. by: how the gateway sorts the list at the
 * first click, such as "-score". sorted: how the rows are sorted at first: such a name, or {index, down} of a column for
 * rows that are all there: rows. Else path and values(): the list to ask for, and its filters. context: of the page whose
 * address holds how the list is sorted. arrived(items): called with each page. href(row): where its first cell leads. none:
 * said when empty. tools(row): buttons at its end. keys: {letter: act(row)}. mark(row): a class. bulk(ids): buttons for the
 * rows that are ticked. Returns {node, reload, redraw, set, count(change): how many rows other filters leave}.
 */
export function table({ label, columns, rows, path, values = () => ({}), context, arrived, href, tools, keys = {}, none = "Nothing here yet.", mark, bulk, size = PAGE, sorted = null }) {
  columns = columns.map((one) => { const field = (row) => row[one.of]; return { label: words(one.of), align: one.as === number && "end", cell: (row) => (one.as ? one.as(field(row)) : field(row)), ...one, sort: one.sort === true ? field : one.sort }; });
  let all = rows || [], shown = [], place = 0, next = null, total = null, order = sorted, busy = 0, choice = chosen(label);
  let by = (context && context.place().query.sort) || sorted || "";
  const cursors = [undefined], ticked = new Set(), bar = h("div.bulk", { role: "status" });
  const head = h("tr"), body = h("tbody"), foot = h("div.pager"), state = h("div");
  const grid = h(`table${href && tools ? ".linked" : ""}`, { "aria-label": label }, h("thead", head), body);
  const scroll = h("div.table-scroll", { tabindex: "-1" }, grid), node = h("div.table", bar, scroll, state, foot);
  // Headings stay in sight where all columns fit; else the table scrolls by itself.
  new ResizeObserver(() => scroll.classList.toggle("fits", grid.offsetWidth <= scroll.clientWidth + 1)).observe(grid);

  const plain = (name) => name.replace(/^-/, "");
  /** Return how a column sorts the rows now: ascending, descending or null. */
  function direction(column, index) {
    if (path) return column.by && plain(by) === plain(column.by) ? (by.startsWith("-") ? "descending" : "ascending") : null;
    return order && order.index === index ? (order.down ? "descending" : "ascending") : null;
  }

  function sortBy(column, index) {
    const now = direction(column, index);
    if (path) {
      by = !now ? column.by : now === "descending" ? plain(by) : `-${by}`;
      if (context) context.filter({ sort: by });
    } else order = { index, down: now === "ascending" };
    restart();
    drawHead();
    head.querySelectorAll(`th:not(.tick)`)[visible().indexOf(column)].firstChild.focus();
  }

  const tick = (row, { target }) => (target.checked ? ticked.add(row.id) : ticked.delete(row.id));
  const visible = () => columns.filter((column, index) => !index || choice[column.label] !== false);

  function drawHead() {
    const every = (event) => { for (const row of shown) tick(row, event); draw(); };
    fill(head, bulk && h("th.tick", { scope: "col" }, h("input", { type: "checkbox", "aria-label": "Select all on this page", onchange: every })), visible().map((column) => {
      const index = columns.indexOf(column), way = direction(column, index);
      const name = (path ? column.by : column.sort)
        ? h("button.sort", { type: "button", onclick: () => sortBy(column, index) }, column.label, h("span.sort-mark", { "aria-hidden": "true" }, way ? (way === "descending" ? "↓" : "↑") : "↕"))
        : column.label;
      return h("th", { scope: "col", class: kind(column), "aria-sort": way }, name);
    }), tools && h("th", { scope: "col", class: "tool" }, h("span.sr", "Actions")));
  }

  function kind(column) {
    return [column.align === "end" && "end", choice[column.label] ? "kept" : column.low && `low${column.low}`, column.wide && "wide"].filter(Boolean).join(" ") || null;
  }

  function line(row) {
    const cells = visible().map((column, index) => {
      const inside = column.cell(row);
      const linked = index === 0 && href && href(row);
      return h("td", { class: kind(column), data: { label: column.label } }, linked ? h("a.row", { href: linked, tabindex: "-1" }, inside) : inside);
    });
    const box = bulk && h("td.tick", h("input", { type: "checkbox", "aria-label": "Select", checked: ticked.has(row.id), onchange: (event) => { tick(row, event); drawBar(); } }));
    const node = h("tr", { class: [href && "open", mark && mark(row)].filter(Boolean).join(" ") || null }, box, cells, tools && h("td.tool", tools(row)));
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
    drawHead();
    draw();
  }

  /** Return all rows that are here, as they are sorted. */
  function inOrder() {
    const sort = order && columns[order.index].sort;
    return sort ? [...all].sort((one, other) => { const [a, b] = [sort(one), sort(other)]; return (a < b ? -1 : a > b ? 1 : 0) * (order.down ? -1 : 1); }) : all;
  }

  /** Draw the rows; where one of them had the focus, the one in its place has it then. */
  function draw() {
    const held = [...body.children].findIndex((one) => one.contains(document.activeElement));
    if (!path) {
      shown = inOrder().slice(place * size, (place + 1) * size);
      next = all.length > (place + 1) * size ? true : null;
      total = all.length;
    }
    fill(body, shown.map(line));
    if (bulk) drawBar();
    const first = body.querySelector("a.row");
    if (first) first.tabIndex = 0;
    fill(state, shown.length ? null : empty(typeof none === "string" ? none : none()));
    grid.hidden = !shown.length;
    const from = place * size + 1;
    fill(foot, shown.length > 0 && [
      h("span.dim", `${from}–${from + shown.length - 1} of ${total === null ? "more than 10,000" : number(total)}`),
      columns.length > 2 && button("Columns", chooseColumns, { kind: "quiet" }), button("CSV", saveAll, { kind: "quiet", sign: "down", title: "Save these rows as CSV" }),
      (place > 0 || next) && [button("Previous", () => turn(-1), { sign: "back", disabled: !place }), button("Next", () => turn(1), { sign: "next", disabled: !next })],
    ]);
    if (held >= 0) step(held);
  }

  function chooseColumns() {
    const isSeen = (column) => { const at = visible().indexOf(column); return at >= 0 && head.querySelectorAll("th:not(.tick)")[at].getClientRects().length > 0; };
    choose(label, columns.slice(1).map((column) => [column.label, isSeen(column)]), (now) => { choice = now; drawHead(); draw(); });
  }

  /** Save all rows that the filters leave, with every field that the gateway states. */
  async function saveAll() {
    const list = path ? await api.all(path, { ...values(), sort: by, limit: 100 }, context?.signal, MOST_SAVED) : inOrder();
    save(`${label.toLowerCase().replaceAll(" ", "-")}.csv`, csv(list), "text/csv");
    toast(path && list.length >= MOST_SAVED && (total === null || total > list.length) ? `Saved the first ${number(list.length)} rows. Set more filters to save the others.` : `Saved ${number(list.length)} ${list.length === 1 ? "row" : "rows"}.`);
  }

  async function turn(step) {
    place += step;
    await reload();
    node.scrollIntoView({ block: "nearest" });
    (body.querySelector("a.row") || foot).focus?.();
  }

  async function fetchPage() {
    const ticket = ++busy;
    if (!body.childElementCount) fill(state, loading());
    node.setAttribute("aria-busy", "true");
    try {
      const page = await api.page(path, { ...values(), sort: by, limit: size, cursor: cursors[place] }, context?.signal);
      if (ticket !== busy) return;
      ({ items: shown, next, total } = page);
      if (arrived) arrived(shown);
      if (next) cursors[place + 1] = next;
      draw();
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

  const reload = () => (path ? fetchPage() : draw());
  const restart = () => { place = 0; cursors.length = 1; return reload(); };
  drawHead();
  reload();
  return {
    node, press, untick,
    redraw: () => shown.length && draw(),
    /** Ask from the first page on, as other filters want it. */
    restart, reload,
    count: async (change) => (await api.page(path, { ...values(change), limit: 1 }, context.signal)).total,
    set(list) { all = list; place = Math.min(place, Math.max(0, Math.ceil(list.length / size) - 1)); draw(); },
    get isFirst() { return place === 0; },
  };
}

/** A column whose text is as sent, cut where it is too long. */
export const cut = (text, title) => h("span.cut", { title: title ?? text ?? "" }, text ?? "–");
