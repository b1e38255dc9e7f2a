// Reports: made of what the gateway keeps for a period, kept, and downloaded as a document.

import { api, at, save } from "../api.js";
import { bytes, fill, h, time } from "../dom.js";
import { formDialog } from "../form.js";
import { RANGES } from "../filters.js";
import { button, code, confirm, headed, load, status, toast, words } from "../ui.js";
import { cut, table } from "../table.js";

const TYPES = ["executive_summary", "security_posture", "threat_summary", "shield_analysis", "traffic_summary", "cost_analysis", "agent_activity", "audit_export", "compliance_evidence", "access_review", "shield_validation"];
const ENDS = { html: "html", markdown: "md", csv: "csv", json: "json" };

export async function draw(context) {
  const { main, tools, can, signal } = context;
  const fetchIt = async (row) => { const { text, type } = await api.text(at("reports", row.id)); save(`${row.type}-${row.created_at.slice(0, 10)}.${ENDS[row.format] || "txt"}`, text, type); };
  const list = table({
    label: "Reports",
    context, sorted: "-created", path: "/api/reports",
    none: "No reports yet. A report covers a period and shows the query behind each number.",
    columns: [
      { label: "Report", by: "type", cell: (row) => h("b", words(row.type)) },
      { label: "Format", by: "format", cell: (row) => words(row.format) },
      { label: "Period from", by: "-since", low: 1, cell: (row) => time(row.since) }, { label: "To", by: "-until", low: 1, cell: (row) => time(row.until) },
      { label: "Created", by: "-created", low: 2, cell: (row) => time(row.created_at) }, { label: "Created by", low: 2, cell: (row) => cut(row.schedule ? `Every ${row.schedule}` : row.created_by) },
      { label: "Size", by: "-size", align: "end", low: 3, cell: (row) => bytes(row.document_bytes) }, { label: "SHA-256", low: 3, cell: (row) => code(row.document_sha256.slice(0, 12)) },
    ],
    tools: (row) => button("Download", () => fetchIt(row), { sign: "down" }),
  });
  fill(tools, can("reports:manage") && button("Make a report", () => formDialog("Make a report", [
    { name: "type", label: "Report type", type: "select", options: TYPES }, { name: "format", label: "Format", type: "select", options: [["html", "HTML, to read and print"], ["markdown", "Markdown"], ["csv", "CSV"], ["json", "JSON"]] },
    { name: "since", label: "Period", type: "select", value: "7d", options: RANGES },
  ], (values) => api.post("/api/reports", values), { label: "Make report", told: "Report created.", done: async (row) => { list.reload(); await fetchIt(row); } }), { kind: "primary", sign: "plus" }));
  const plans = h("div");
  const again = load(plans, () => api.page("/api/report-schedules", {}, signal), ({ items }) => table({
    label: "Report schedules", rows: items, none: "No schedules. A schedule makes a report every day, week or month.",
    columns: [
      { label: "Report", cell: (row) => h("b", words(row.type)) }, { label: "Every", cell: (row) => words(row.every) }, { label: "Format", low: 1, cell: (row) => words(row.format) },
      { label: "State", low: 1, cell: (row) => status(row.enabled ? "enabled" : "disabled") }, { label: "Next", cell: (row) => time(row.next_at) }, { label: "Created by", low: 2, cell: (row) => cut(row.created_by) },
    ],
    tools: can("reports:manage") ? (row) => h("span", button("Edit", () => plan(row, again)), " ", button("Remove", () => confirm("Remove this schedule?", "It makes no more reports. Existing reports remain.", "Remove", async () => { await api.remove(at("report-schedules", row.id)); toast("Schedule removed."); again(); }))) : null,
  }).node);
  fill(main, h("section.panel", list.node), headed("Schedules", can("reports:manage") && button("Add schedule", () => plan(null, again), { sign: "plus" }), plans));
  return { press: list.press };
}

const plan = (row, again) => formDialog(row ? "Schedule" : "Add schedule", [
  { name: "type", label: "Report type", type: "select", value: row?.type, options: TYPES }, { name: "every", label: "Every", type: "select", value: row?.every || "week", options: ["day", "week", "month"] },
  { name: "format", label: "Format", type: "select", value: row?.format, options: ["html", "markdown", "csv", "json"] }, { name: "enabled", label: "Enabled", type: "switch", value: row ? row.enabled : true },
], (values) => (row ? api.patch(at("report-schedules", row.id), { ...values, version: row.version }) : api.post("/api/report-schedules", values)), { told: "Saved.", done: again });
