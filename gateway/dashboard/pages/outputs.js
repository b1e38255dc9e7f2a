// Event outputs: where audit events and alerts are sent as they happen, and what became of that.

import { api, at } from "../api.js";
import { ago, fill, h, millis, number } from "../dom.js";
import { formDialog } from "../form.js";
import { keep, PRIVATE, records, removal } from "../records.js";
import { ADD, bold, button, code, dialog, snippet, status, toast, words } from "../ui.js";
import { cut } from "../table.js";

export async function draw({ main, tools, can, signal }) {
  const body = h("section.panel"), mayAct = can("settings:manage");
  const again = records(body, "event-outputs", signal, {
    none: "No outputs. An output sends events to a webhook, a syslog server or a file.",
    columns: [
      { label: "Output", of: "name", as: bold, sort: true }, { label: "Type", of: "kind", as: words }, { of: "target", as: cut, wide: true, low: 2 },
      { label: "State", cell: (row) => (row.last_error ? h("span", { title: row.last_error }, status("failed")) : status(row.enabled ? "enabled" : "disabled")) },
      { of: "sent", as: number, low: 1 }, { of: "waiting", as: number, low: 2 }, { of: "dropped", as: number, low: 2 }, { of: "last_sent_at", as: ago, low: 3 },
    ],
    tools: mayAct ? (row) => h("span", button("Test", async () => { const tried = await api.post(at("event-outputs", row.id, "test")); toast(tried.ok ? `Arrived in ${millis(tried.elapsed_ms)}.` : `It did not arrive: ${tried.reason}`, tried.ok ? "good" : "bad"); again(); }), " ", button("Edit", () => edit(row, again)), " ",
      removal("event-outputs", row, "The gateway sends no more events there and drops waiting events.", again)) : null,
  });
  fill(tools, mayAct && button("Add output", () => edit(null, again), ADD));
  fill(main, body);
  return {};
}

const edit = (row, again) => formDialog(row ? `Output ${row.name}` : "Add output", [
  { name: "name", required: true, max_chars: 64 },
  !row && { name: "kind", label: "Type", options: [["webhook", "Webhook: HTTPS POST, signed"], ["syslog", "Syslog server"], ["jsonl", "File of JSON lines"]] },
  { name: "target", required: true, placeholder: "https://siem.example.com/hook", hint: "A URL, host:port of a syslog server, or the name of a file in the data folder." },
  !row && { name: "secret", label: "Signing secret", type: "password", hint: "The secret, or a reference: env:NAME, file:PATH. Empty: the gateway creates one and shows it once." },
  { name: "kinds", label: "Events to send", type: "checks", value: row ? row.kinds : ["audit", "alert"], options: [["audit", "Audit events"], ["alert", "Alerts"]], required: true },
  { name: "min_severity", label: "From severity", value: row?.min_severity || "info", options: ["info", "low", "medium", "high", "critical"] },
  { name: "format", value: row?.format || "json", options: [["json", "JSON of the gateway"], ["ocsf", "OCSF: JSON of the Open Cybersecurity Schema Framework"], ["cef", "CEF: lines of the Common Event Format"]] },
  PRIVATE,
  { name: "enabled", type: "switch", value: row ? row.enabled : true },
], ({ secret, ...values }) => keep("event-outputs", row, { ...values, secret: secret || undefined }), {
  of: row, label: row ? "Save" : "Add output", told: "Saved.",
  done: (made) => { again(); if (made.secret) dialog("Signing secret", [h("p", "The receiver checks signatures with it. It is shown only once."), snippet(made.secret), h("p.dim", "For ", code(made.name), ".")]); },
});
