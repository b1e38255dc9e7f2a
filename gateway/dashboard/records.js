// What the pages of records have in common: one is saved, or removed after a question.

import { api, at } from "./api.js";
import { table } from "./table.js";
import { button, confirm, load, toast, words } from "./ui.js";

/** Show all records of a list in a table. more: about the table. Returns how to do so again. */
export const records = (node, path, signal, more) => load(node, () => api.page(`/api/${path}`, {}, signal), ({ items }) => table({ label: words(path), rows: items, ...more }).node);
/** Change a record, or add it where there is none yet. path: of its list. */
export const keep = (path, row, values) => (row ? api.patch(at(path, row.id), { ...values, version: row.version }) : api.post(`/api/${path}`, values));
/** A button that removes a record. text: what follows from that. */
export const removal = (path, row, text, done) => button("Remove", () => confirm(`Remove ${row.name}?`, text, "Remove", async () => { await api.remove(at(path, row.id)); toast(`${row.name} is removed.`); done(); }));
/** The field of the key that a server is asked with. It is never shown. */
export const keyField = (row) => ({ name: "api_key", label: row?.api_key_source ? "New API key" : "API key", type: "password", hint: "The key, or a reference: env:NAME, file:PATH, cred:NAME. The settings list allowed names and folders. Required again if the address changes its host." });
export const PRIVATE = { name: "allow_private", label: "Allow private addresses", type: "switch" };
