// Event outputs: where audit events and alerts are sent as they happen, and what became of that.

import { api, at } from "../api.js";
import { ago, fill, h, millis, number } from "../dom.js";
import { formDialog } from "../form.js";
import { button, code, confirm, dialog, load, snippet, status, toast, words } from "../ui.js";
import { cut, table } from "../table.js";

export async function draw({ main, tools, can, signal }) {
  const body = h("section.panel"), mayAct = can("settings:manage");
  const again = load(body, () => api.page("/api/event-outputs", {}, signal), ({ items }) => table({
    label: "Event outputs", rows: items, none: "No outputs. An output sends events to a webhook, a syslog server or a file.",
    columns: [
      { label: "Output", cell: (row) => h("b", row.name), sort: (row) => row.name }, { label: "Type", cell: (row) => words(row.kind) }, { label: "Target", wide: true, low: 2, cell: (row) => cut(row.target) },
      { label: "State", cell: (row) => (row.last_error ? h("span", { title: row.last_error }, status("failed")) : status(row.enabled ? "enabled" : "disabled")) },
      { label: "Sent", align: "end", low: 1, cell: (row) => number(row.sent) }, { label: "Waiting", align: "end", low: 2, cell: (row) => number(row.waiting) }, { label: "Dropped", align: "end", low: 2, cell: (row) => number(row.dropped) }, { label: "Last sent", low: 3, cell: (row) => ago(row.last_sent_at) },
    ],
    tools: mayAct ? (row) => h("span", button("Test", async () => { const tried = await api.post(at("event-outputs", row.id, "test")); toast(tried.ok ? `Arrived in ${millis(tried.elapsed_ms)}.` : `It did not arrive: ${tried.reason}`, tried.ok ? "good" : "bad"); again(); }), " ", button("Edit", () => edit(row, again)), " ",
      button("Remove", () => confirm(`Remove ${row.name}?`, "The gateway sends no more events there and drops waiting events.", "Remove", async () => { await api.remove(at("event-outputs", row.id)); toast("Output removed."); again(); }))) : null,
  }).node);
  fill(tools, mayAct && button("Add output", () => edit(null, again), { kind: "primary", sign: "plus" }));
  fill(main, body);
  return {};
}

const edit = (row, again) => formDialog(row ? `Output ${row.name}` : "Add output", [
  { name: "name", label: "Name", required: true, value: row?.name, max_chars: 64 },
  !row && { name: "kind", label: "Type", type: "select", options: [["webhook", "Webhook: HTTPS POST, signed"], ["syslog", "Syslog server"], ["jsonl", "File of JSON lines"]] },
  { name: "target", label: "Target", required: true, value: row?.target, placeholder: "https://siem.example.com/hook", hint: "A URL, host:port of a syslog server, or the name of a file in the data folder." },
  !row && { name: "secret", label: "Signing secret", type: "password", hint: "The secret, or a reference: env:NAME, file:PATH. Empty: the gateway creates one and shows it once." },
  { name: "kinds", label: "Events to send", type: "checks", value: row ? row.kinds : ["audit", "alert"], options: [["audit", "Audit events"], ["alert", "Alerts"]], required: true },
  { name: "min_severity", label: "From severity", type: "select", value: row?.min_severity || "info", options: ["info", "low", "medium", "high", "critical"] },
  { name: "format", label: "Format", type: "select", value: row?.format || "json", options: [["json", "JSON of the gateway"], ["ocsf", "OCSF: JSON of the Open Cybersecurity Schema Framework"], ["cef", "CEF: lines of the Common Event Format"]] },
  { name: "allow_private", label: "Allow private addresses", type: "switch", value: row?.allow_private },
  { name: "enabled", label: "Enabled", type: "switch", value: row ? row.enabled : true },
], ({ secret, ...values }) => { const body = secret ? { ...values, secret } : values; return row ? api.patch(at("event-outputs", row.id), { ...body, version: row.version }) : api.post("/api/event-outputs", body); }, {
  label: row ? "Save" : "Add output", told: "Saved.",
  done: (made) => { again(); if (made.secret) dialog("Signing secret", [h("p", "The receiver checks signatures with it. It is shown only once."), snippet(made.secret), h("p.dim", "For ", code(made.name), ".")]); },
});
