// Which columns of a table somebody wants to see. This browser keeps the choice.

import { h } from "./dom.js";
import { button, dialog } from "./ui.js";

const COLUMNS = "gateway.columns";
const kept = () => { try { return JSON.parse(localStorage.getItem(COLUMNS)) || {}; } catch { return {}; } };
/** Return what was chosen for a table: {column: true or false}. */
export const chosen = (table) => kept()[table] || {};

/** Let somebody choose. columns: [[label, isSeen]]. changed: called with what is chosen now. */
export function choose(table, columns, changed) {
  const keep = (choice) => { localStorage.setItem(COLUMNS, JSON.stringify({ ...kept(), [table]: choice })); changed(choice); };
  const box = dialog("Columns", h("div.checks", columns.map(([label, isSeen]) => h("label.check", h("input", { type: "checkbox", checked: isSeen, onchange: (event) => keep({ ...chosen(table), [label]: event.target.checked }) }), label))),
    { actions: [button("Reset", () => { keep({}); box.close(); }), button("Done", () => box.close(), { kind: "primary" })] });
}
