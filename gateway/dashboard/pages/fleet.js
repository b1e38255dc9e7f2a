// The fleet: every instance that runs on this database, and other gateways that are asked with a key.

import { api } from "../api.js";
import { ago, bytes, fill, h, isNone, number, span } from "../dom.js";
import { formDialog } from "../form.js";
import { PRIVATE, removal } from "../records.js";
import { bold, button, code, empty, load, panel, stat, status } from "../ui.js";
import { table } from "../table.js";

export async function draw({ main, tools, can, signal }) {
  const body = h("div.stack"), peers = h("section.panel"), mayAct = can("settings:manage");
  const again = load(body, () => api.get("/api/fleet", {}, signal), (fleet) => [
    panel(null, h("div.stats", stat("Instances", number(fleet.total)), stat("Healthy", number(fleet.healthy)), stat("Posture", fleet.posture ?? "–", "of 100, higher is better"), stat("Threat", fleet.threat ?? "–", "of 100, lower is better"))),
    panel("Instances", table({
      label: "Instances", rows: fleet.instances, none: "No instance has sent a heartbeat. Each sends one every 15 seconds.",
      columns: [
        { label: "Instance", cell: (row) => h("span", { title: row.problem || "" }, bold(row.name), row.peer && h("span.dim", ` by ${row.peer}`)), sort: (row) => row.name },
        { of: "connection", as: status, sort: true },
        { of: "status", as: status, low: 1, sort: true },
        { of: "version", as: code, low: 2 },
        { label: "Uptime", of: "uptime_seconds", as: span, align: "end", low: 2, sort: true },
        { label: "CPU", of: "cpu_percent", as: (value) => (isNone(value) ? "–" : `${Math.round(value)} %`), align: "end", low: 2, sort: true },
        { label: "Memory", of: "memory_bytes", as: bytes, align: "end", low: 1, sort: true },
        { label: "Blocked, 24 h", of: "threats", as: number, low: 2 }, { of: "alerts", as: number, low: 3 }, { of: "agents", as: number, low: 3 }, { label: "Posture", of: "posture_score", as: number, low: 3 },
        { of: "last_seen", as: ago, low: 1 },
      ] }).node)]);
  const ask = load(peers, () => api.page("/api/fleet/peers", {}, signal), ({ items }) => [h("header.panel-head", h("h2", "Other gateways"), mayAct && h("div.tools", button("Add a gateway", () => formDialog("Add a gateway", [
    { name: "name", required: true }, { name: "url", label: "Address", required: true, placeholder: "https://gateway-2.example.com:5001" }, { name: "api_key", label: "API key", type: "password", required: true, hint: "A key of that gateway with fleet:read, or a reference: env:NAME, file:PATH." }, PRIVATE,
  ], (values) => api.post("/api/fleet/peers", values), { label: "Add", told: (made) => (made.problem ? [`Added, but it does not answer: ${made.problem}`, "bad"] : "Added. It has answered."), done: () => { ask(); again(); } }), { sign: "plus" }))),
  items.length ? table({ label: "Other gateways", rows: items, columns: [{ of: "name", as: bold }, { label: "Address", of: "url", as: code, low: 1 }, { label: "State", cell: (row) => (row.problem ? h("span", status("failed"), h("span.dim.small", ` ${row.problem}`)) : status(row.answered_at ? "online" : "pending")) }, { of: "instances", align: "end", low: 2 }, { label: "Last answer", of: "answered_at", as: ago, low: 1 }, { label: "Key", of: "api_key", as: code, low: 3 }],
    tools: mayAct ? (row) => removal("fleet/peers", row, "This gateway stops polling it.", () => { ask(); again(); }) : null }).node : empty("Add gateways that have their own database. This gateway polls each with an API key of that gateway.")]);
  fill(tools, button("Refresh", async () => { again(); ask(); }, { sign: "refresh" }));
  fill(main, body, peers);
  const slow = setInterval(() => document.hidden || again(), 15000);
  signal.addEventListener("abort", () => clearInterval(slow));
  return {};
}
