// Options: what may be changed while the gateway runs, and every other setting with where it comes from.

import { api } from "../api.js";
import { fill, h, plain } from "../dom.js";
import { form } from "../form.js";
import { filters } from "../filters.js";
import { bold, button, code, load, panel, tag, toast, words } from "../ui.js";
import { cut, table } from "../table.js";

const SOURCES = { default: "Default", environment: "Environment", flag: "Command line", file: "Settings file", database: "Set here" };

export async function draw(context, here) {
  const { main, can, signal } = context;
  let values = here.query, list = null, all = [];
  const kept = h("div"), body = h("section.panel");
  const fits = (row) => !values.search || `${row.name} ${row.variable} ${row.about}`.toLowerCase().includes(values.search.toLowerCase());
  const again = load(body, () => api.page("/api/settings", {}, signal), ({ items }) => {
    all = items;
    fill(kept, retention(items.filter((row) => row.changeable)));
    if (list) { list.set(all.filter(fits)); return undefined; }
    list = table({
      label: "Settings", rows: all.filter(fits), size: 100, none: "No setting matches.",
      columns: [
        { label: "Setting", of: "name", as: bold, sort: true },
        { label: "Value", cell: (row) => (row.secret ? h("span.dim", plain(row.value)) : code(plain(row.value))) },
        { label: "Source", low: 1, cell: (row) => (row.source === "default" ? h("span.dim", "Default") : tag(SOURCES[row.source] || words(row.source), "accent")), sort: (row) => row.source },
        { of: "variable", as: code, low: 3 },
        { label: "Description", of: "about", as: cut, wide: true, low: 2 },
      ],
    });
    return list.node;
  });

  function retention(rows) {
    if (!rows.length) return null;
    const mayAct = can("settings:manage");
    const node = form(rows.map((row) => ({ name: row.name, label: words(row.name.replace("retention_", "")).replace(/ days$/, ", days"), type: "number", min: 0, value: row.value, required: true, hint: row.about })), async (given) => api.patch("/api/settings", given), { label: "Save", done: () => { toast("Saved. It applies at once."); again(); } });
    node.classList.add("across");
    const changed = rows.filter((row) => row.source === "database" || plain(row.value) !== plain(row.default));
    if (!mayAct) for (const input of node.querySelectorAll("input, button")) input.disabled = true;
    return panel("Retention", node, mayAct && changed.length ? h("div.row-line", button("Reset to the startup value", async () => { await api.patch("/api/settings", { reset: rows.map((row) => row.name) }); toast("Reset."); again(); }, { kind: "small" })) : null);
  }
  fill(main, kept, filters([{ name: "search", placeholder: "Name or description" }], values, (change) => { values = context.filter(change); list?.set(all.filter(fits)); }), h("p.dim", "The gateway reads these settings at startup and on SIGHUP from flags, the environment and the settings file. Secrets are masked."), body);
  return { moved: () => {} };
}
