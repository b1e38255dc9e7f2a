// Providers of models: where prompts go, in which order, with a button that tries each.

import { api, at } from "../api.js";
import { fill, h, millis } from "../dom.js";
import { formDialog } from "../form.js";
import { button, code, confirm, facts, load, status, tag, tags, toast } from "../ui.js";
import { table } from "../table.js";

export async function draw({ main, tools, can, signal }) {
  const body = h("section.panel"), mayAct = can("providers:manage");
  const again = load(body, () => api.page("/api/providers", {}, signal), ({ items }) => table({
    label: "Providers", rows: items, none: "No provider yet. The built-in model echo answers with the prompt’s text, so that everything can be tried.",
    columns: [
      { label: "Provider", cell: (row) => h("span", h("b", row.name), " ", row.origin !== "record" && tag(row.origin === "settings" ? "from the settings" : "built in")), sort: (row) => row.name },
      { label: "State", cell: (row) => h("span", status(row.status), row.problem && h("span.dim", " ", row.problem)) },
      { label: "Address", low: 2, cell: (row) => code(row.base_url) },
      { label: "Models", low: 1, cell: (row) => tags(row.models) },
      { label: "Priority", align: "end", low: 3, cell: (row) => row.priority, sort: (row) => row.priority },
      { label: "Weight", align: "end", low: 3, cell: (row) => row.weight },
      { label: "Key", low: 2, cell: (row) => (row.has_api_key ? code(row.api_key_source || "kept") : h("span.dim", "none")) },
    ],
    tools: mayAct ? (row) => h("span", button("Test", () => tryIt(row, again)), " ", row.origin === "record" && [button("Edit", () => edit(row, again)), " ", button("Remove", () => confirm(`Remove ${row.name}?`, "It gets no more prompts, and the key that was typed in for it is deleted.", "Remove", async () => { await api.remove(at("providers", row.id)); toast("Provider removed."); again(); }))]) : null,
  }).node);
  fill(tools, mayAct && button("Add provider", () => edit(null, again), { kind: "primary", sign: "plus" }));
  fill(main, body);
  return {};
}

async function tryIt(row, again) {
  const found = await api.post(at("providers", row.id, "test"));
  toast(found.ok ? `${row.name} answered in ${millis(found.latency_ms)} with ${found.models.length} models.` : `${row.name}: ${found.error}`, found.ok ? "good" : "bad");
  again();
}

const edit = (row, again) => formDialog(row ? `Provider ${row.name}` : "Add provider", [
  { name: "name", label: "Name", required: true, value: row?.name, max_chars: 64 },
  !row && { name: "type", label: "Kind", type: "select", options: [["openai-compatible", "Speaks the OpenAI API"], ["echo", "Built-in echo, for trying"]] },
  { name: "base_url", label: "Address", value: row?.base_url, placeholder: "https://api.example.com/v1", hint: "The base URL, /v1 included.", when: (values) => row ? row.type !== "echo" : values.type !== "echo" },
  { name: "api_key", label: row?.has_api_key ? "Another API key" : "API key", type: "password", hint: "The key, or where it is: env:NAME, file:PATH, cred:NAME. The settings say which names and folders are allowed. Needed again when the address leads to another host.", when: (values) => row ? row.type !== "echo" : values.type !== "echo" },
  { name: "models", label: "Models", type: "list", value: row?.models, placeholder: "gpt-*, o3", hint: "Names or patterns. None: all it has." },
  { name: "priority", label: "Priority", type: "number", min: 0, value: row?.priority ?? 100, hint: "The lowest is asked first." },
  { name: "weight", label: "Weight", type: "number", min: 1, value: row?.weight ?? 1, hint: "How requests are shared among those of one priority." },
  { name: "timeout_seconds", label: "Longest wait in seconds", type: "number", min: 1, value: row?.timeout_seconds ?? 600 },
  { name: "max_retries", label: "Retries", type: "number", min: 0, value: row?.max_retries ?? 1 },
  { name: "allow_private", label: "May lie in a private network", type: "switch", value: row?.allow_private },
  { name: "enabled", label: "In use", type: "switch", value: row ? row.enabled : true },
], ({ api_key, ...values }) => {
  const body = { ...values, api_key: api_key || undefined, models: values.models.length ? values.models : row ? ["*"] : undefined };
  return row ? api.patch(at("providers", row.id), { ...body, version: row.version }) : api.post("/api/providers", body);
}, { label: row ? "Save" : "Add provider", told: (made) => (made.problem ? [`Saved, but the provider has no key. ${made.problem}`, "bad"] : made.enabled ? "Saved. The provider may get the next prompt." : "Saved. The provider is disabled and gets no prompts."), done: again, intro: row ? null : facts(["What happens", "Once enabled, the provider receives prompts for its models."]) });
