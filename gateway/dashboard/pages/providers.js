// Providers of models: where prompts go, in which order, with a button that tries each.

import { api, at } from "../api.js";
import { fill, h, millis } from "../dom.js";
import { formDialog } from "../form.js";
import { keep, keyField, PRIVATE, records, removal } from "../records.js";
import { ADD, button, code, facts, status, tag, tags, toast } from "../ui.js";

export async function draw({ main, tools, can, signal }) {
  const body = h("section.panel"), mayAct = can("providers:manage");
  const again = records(body, "providers", signal, {
    none: "No provider yet. The built-in model echo repeats the prompt, so you can try everything.",
    columns: [
      { label: "Provider", cell: (row) => h("span", h("b", row.name), " ", row.origin !== "record" && tag(row.origin === "settings" ? "from the settings" : "built in")), sort: (row) => row.name },
      { label: "State", cell: (row) => h("span", status(row.status), row.problem && h("span.dim", " ", row.problem)) },
      { label: "Address", of: "base_url", as: code, low: 2 },
      { of: "models", as: tags, low: 1 },
      { of: "priority", align: "end", low: 3, sort: true },
      { of: "weight", align: "end", low: 3 },
      { label: "Key", low: 2, cell: (row) => (row.has_api_key ? code(row.api_key_source || "kept") : h("span.dim", "none")) },
    ],
    tools: mayAct ? (row) => h("span", button("Test", () => tryIt(row, again)), " ", row.origin === "record" && [button("Edit", () => edit(row, again)), " ", removal("providers", row, "It gets no more prompts, and the gateway deletes its stored key.", again)]) : null,
  });
  fill(tools, mayAct && button("Add provider", () => edit(null, again), ADD));
  fill(main, body);
  return {};
}

async function tryIt(row, again) {
  const found = await api.post(at("providers", row.id, "test"));
  toast(found.ok ? `${row.name} answered in ${millis(found.latency_ms)} with ${found.models.length} models.` : `${row.name}: ${found.error}`, found.ok ? "good" : "bad");
  again();
}

const edit = (row, again) => formDialog(row ? `Provider ${row.name}` : "Add provider", [
  { name: "name", required: true, max_chars: 64 },
  !row && { name: "type", options: [["openai-compatible", "OpenAI-compatible API"], ["echo", "Built-in echo, for testing"]] },
  { name: "base_url", label: "Address", placeholder: "https://api.example.com/v1", hint: "The base URL, including /v1.", when: (values) => row ? row.type !== "echo" : values.type !== "echo" },
  { ...keyField(row), when: (values) => row ? row.type !== "echo" : values.type !== "echo" },
  { name: "models", type: "list", placeholder: "gpt-*, o3", hint: "Names or patterns. Empty: all models." },
  { name: "priority", type: "number", min: 0, value: row?.priority ?? 100, hint: "The gateway tries the lowest first." },
  { name: "weight", type: "number", min: 1, value: row?.weight ?? 1, hint: "Share of requests among providers of the same priority." },
  { name: "timeout_seconds", label: "Timeout in seconds", type: "number", min: 1, value: row?.timeout_seconds ?? 600 },
  { name: "max_retries", label: "Retries", type: "number", min: 0, value: row?.max_retries ?? 1 },
  PRIVATE,
  { name: "enabled", type: "switch", value: row ? row.enabled : true },
], ({ api_key, ...values }) => keep("providers", row, { ...values, api_key: api_key || undefined, models: values.models.length ? values.models : row ? ["*"] : undefined }), { of: row, label: row ? "Save" : "Add provider", told: (made) => (made.problem ? [`Saved, but the provider has no key. ${made.problem}`, "bad"] : made.enabled ? "Saved. The provider may get the next prompt." : "Saved. The provider is disabled and gets no prompts."), done: again, intro: row ? null : facts(["What happens", "Once enabled, the provider receives prompts for its models."]) });
