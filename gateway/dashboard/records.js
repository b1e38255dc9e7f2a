// What the pages of records have in common: one is saved, or removed after a question.

import { afterNews, api, at } from "./api.js";
import { fill, h } from "./dom.js";
import { filters } from "./filters.js";
import { learn } from "./names.js";
import { table } from "./table.js";
import { button, confirm, load, toast, words } from "./ui.js";
import { detail } from "./pages/detail.js";

/**
 * Draw a page of one list of the gateway: filters whose values stand in the address, the table, and what a row opens.
 * fields: of the filters. pane: [its title, draw(row, again): what stands in it]; it opens for a row. news: the events after which the first page is read
 * again, while `mayRead`. read(query): the values that go together. change(values): a choice with what else it changes.
 * intro, above: stand before and after the filters. changed: called after a choice. hasNames: of rules or keys. more: about
 * the table. Returns {list, bar, wanted(): the values now, apply(values), reload, moved, press}.
 */
export function browse(context, here, { fields = [], pane, news, mayRead = () => true, read = (query) => query, change = (given) => given, intro, above, changed, hasNames, ...more }) {
  let values = read(here.query);
  const names = fields.filter(Boolean).flatMap(({ name }) => (name === "since" ? ["since", "until"] : name));
  const wanted = (given) => { const all = read({ ...values, ...change(given || {}) }); return Object.fromEntries(names.map((name) => [name, all[name]])); };
  const list = table({ context, values: wanted, href: pane && ((row) => context.link(here.id, [row.id], context.place().query)), ...more });
  const apply = (given) => {
    values = read(context.filter(change(given)));
    for (const name of names) if (bar.elements[name] && name !== "since") bar.elements[name].value = values[name] ?? fields.find((one) => one.name === name).value ?? "";
    list.untick();
    list.restart();
    changed?.();
  };
  const bar = filters(fields, values, apply, list.count);
  fill(context.main, intro && h("p.dim", intro), fields.length > 0 && bar, above, h("section.panel", list.node));
  const reload = () => { list.untick(); list.reload(); };
  const moved = !pane ? () => {} : detail(context, [here.id], (id) => {
    const [title, draw] = pane, body = h("div.stack"), known = hasNames && learn();
    const ask = async () => { const row = await api.get(`${more.path}/${encodeURIComponent(id)}`, {}, context.signal); await known; return row; };
    const again = load(body, ask, (row) => draw(row, () => { again(); reload(); }));
    return { title, body };
  });
  moved(here);
  if (hasNames) learn().then(() => context.signal.aborted || list.redraw());
  if (news) afterNews(context, news, () => { if (list.isFirst && mayRead()) list.reload(); });
  return { list, bar, apply, wanted, reload, moved, press: list.press };
}

/** Show all records of a list in a table. more: about the table. Returns how to do so again. */
export const records = (node, path, signal, more) => load(node, () => api.page(`/api/${path}`, {}, signal), ({ items }) => table({ label: words(path), rows: items, ...more }).node);
/** Change a record, or add it where there is none yet. path: of its list. */
export const keep = (path, row, values) => (row ? api.patch(at(path, row.id), { ...values, version: row.version }) : api.post(`/api/${path}`, values));
/** A button that removes a record. text: what follows from that. */
export const removal = (path, row, text, done) => button("Remove", () => confirm(`Remove ${row.name}?`, text, "Remove", async () => { await api.remove(at(path, row.id)); toast(`${row.name} is removed.`); done(); }));
/** The field of the key that a server is asked with. It is never shown. */
export const keyField = (row) => ({ name: "api_key", label: row?.api_key_source ? "New API key" : "API key", type: "password", hint: "The key, or a reference: env:NAME, file:PATH, cred:NAME. The settings list allowed names and folders. Required again if the address changes its host." });
export const PRIVATE = { name: "allow_private", label: "Allow private addresses", type: "switch" };
