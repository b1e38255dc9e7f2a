// The access list: addresses, keys, models, tools and agents that may come in, or may not.

import { api, at } from "../api.js";
import { ago, fill, h, number } from "../dom.js";
import { formDialog } from "../form.js";
import { browse, keep } from "../records.js";
import { ADD, button, confirm, status, tag, toast } from "../ui.js";
import { cut } from "../table.js";

const TYPES = ["IP", "CIDR", "KEY", "MODEL", "PROVIDER", "TOOL", "AGENT", "DOMAIN"].map((name) => [name, name]);

export async function draw(context, here) {
  const mayAct = context.can("access:manage");
  const page = browse(context, here, {
    label: "Access list", path: "/api/access", intro: "Deny entries take precedence. If allow entries of a kind exist, one of them must match. Everything else is allowed.",
    fields: [{ name: "list", options: ["", "allow", "deny"] }, { name: "type", options: ["", ...TYPES] }],
    none: "No entries. Anyone with a valid key may use the gateway from any address.",
    columns: [
      { label: "Value", by: "value", cell: (row) => h("code.cut", { title: row.value }, row.value) }, { label: "List", by: "list", cell: (row) => tag(row.list === "deny" ? "Deny" : "Allow", row.list === "deny" ? "" : "accent") }, { of: "type", by: "type" },
      { of: "scope", as: cut, low: 2 }, { label: "Why", of: "reason", as: cut, wide: true, low: 2 }, { of: "hits", as: number, by: "-hits", low: 1 },
      { of: "expires_at", as: ago, by: "expires", low: 1 }, { of: "status", as: status, low: 3 }, { of: "created_by", as: cut, low: 3 },
    ],
    tools: mayAct ? (row) => h("span", button("Edit", () => edit(row, page.reload)), " ", button("Remove", () => remove(row, page.reload))) : null,
  });
  fill(context.tools, mayAct && button("Add entry", () => edit(null, page.reload), ADD));
  return page;
}

/** Ask, then remove. Where that would shut somebody out, the gateway says whom, and a second question follows. */
const remove = (row, done) => confirm("Remove this entry?", `${row.list} ${row.type} ${row.value} no longer applies, in every worker.`, "Remove", async () => {
  try { await drop(row, {}, done); } catch (error) {
    if (error.param !== "force") throw error;
    confirm("Remove it anyway?", error.message, "Remove anyway", () => drop(row, { force: "true" }, done));
  }
});
const drop = async (row, values, done) => { await api.remove(at("access", row.id), values); toast("Entry removed."); done(); };

const edit = (row, done) => formDialog(row ? "Change entry" : "Add entry", [
  { name: "list", value: row?.list || "deny", options: ["deny", "allow"] },
  !row && { name: "type", options: TYPES },
  { name: "value", required: true, hint: "An address, a network, a key’s prefix, or a name or pattern such as gpt-*." },
  { name: "scope", value: row?.scope || "global", hint: "global, or the key it applies to." },
  { name: "reason", label: "Why" },
  { name: "expires_at", type: "expiry", never: null },
  { name: "force", label: "Apply even if it locks out me, this host or every key", type: "switch" },
], (values) => keep("access", row, values), { of: row, label: row ? "Save" : "Add", told: "Saved. It applies from the next request, in every worker.", done });
