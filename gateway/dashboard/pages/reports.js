// Reports: made of what the gateway keeps for a period, kept, and downloaded as a document.

import { api, at, save } from "../api.js";
import { bytes, fill, h, time } from "../dom.js";
import { formDialog } from "../form.js";
import { RANGES } from "../filters.js";
import { keep, records } from "../records.js";
import { ADD, button, code, confirm, headed, status, toast, words } from "../ui.js";
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
      { of: "format", as: words, by: "format" },
      { label: "Period from", of: "since", as: time, by: "-since", low: 1 }, { label: "To", of: "until", as: time, by: "-until", low: 1 },
      { of: "created_at", as: time, by: "-created", low: 2 }, { label: "Created by", low: 2, cell: (row) => cut(row.schedule ? `Every ${row.schedule}` : row.created_by) },
      { label: "Size", of: "document_bytes", as: bytes, by: "-size", align: "end", low: 3 }, { label: "SHA-256", low: 3, cell: (row) => code(row.document_sha256.slice(0, 12)) },
    ],
    tools: (row) => button("Download", () => fetchIt(row), { sign: "down" }),
  });
  fill(tools, can("reports:manage") && button("Make a report", () => formDialog("Make a report", [
    { name: "type", label: "Report type", options: TYPES }, { name: "format", options: [["html", "HTML, to read and print"], ["markdown", "Markdown"], ["csv", "CSV"], ["json", "JSON"]] },
    { name: "since", label: "Period", value: "7d", options: RANGES },
  ], (values) => api.post("/api/reports", values), { label: "Make report", told: "Report created.", done: async (row) => { list.reload(); await fetchIt(row); } }), ADD));
  const plans = h("div");
  const again = records(plans, "report-schedules", signal, {
    none: "No schedules. A schedule makes a report every day, week or month.",
    columns: [
      { label: "Report", cell: (row) => h("b", words(row.type)) }, { of: "every", as: words }, { of: "format", as: words, low: 1 },
      { label: "State", low: 1, cell: (row) => status(row.enabled ? "enabled" : "disabled") }, { of: "next_at", as: time }, { of: "created_by", as: cut, low: 2 },
    ],
    tools: can("reports:manage") ? (row) => h("span", button("Edit", () => plan(row, again)), " ", button("Remove", () => confirm("Remove this schedule?", "It makes no more reports. Existing reports remain.", "Remove", async () => { await api.remove(at("report-schedules", row.id)); toast("Schedule removed."); again(); }))) : null,
  });
  fill(main, h("section.panel", list.node), headed("Schedules", can("reports:manage") && button("Add schedule", () => plan(null, again), { sign: "plus" }), plans));
  return { press: list.press };
}

const plan = (row, again) => formDialog(row ? "Schedule" : "Add schedule", [
  { name: "type", label: "Report type", options: TYPES }, { name: "every", value: row?.every || "week", options: ["day", "week", "month"] },
  { name: "format", options: ["html", "markdown", "csv", "json"] }, { name: "enabled", type: "switch", value: row ? row.enabled : true },
], (values) => keep("report-schedules", row, values), { of: row, told: "Saved.", done: again });
