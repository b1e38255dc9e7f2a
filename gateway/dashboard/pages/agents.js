// Agents: who uses models through the gateway, as seen in traffic or registered, and what each may go on doing.

import { api, at } from "../api.js";
import { ago, compact, fill, h, time } from "../dom.js";
import { form, formDialog } from "../form.js";
import { filters } from "../filters.js";
import { keep } from "../records.js";
import { ADD, button, confirm, dialog, facts, load, severity, status, tags, toast, words } from "../ui.js";
import { cut, table } from "../table.js";
import { activity } from "./activity.js";
import { detail } from "./detail.js";

const STATES = ["active", "discovered", "idle", "inactive", "configured", "blocked", "retired"];

export async function draw(context, here) {
  const { main, tools, can, signal, link } = context;
  let values = here.query;
  const mayAct = can("agents:manage");
  const list = table({
    label: "Agents",
    context, sorted: "-risk", path: "/api/agents", values: (change) => ({ ...values, ...change }),
    href: (row) => link("agents", [row.id], context.place().query),
    none: "No agent matches. The gateway discovers agents in traffic; you can also register them here.",
    columns: [
      { label: "Agent", of: "name", as: cut, by: "name", wide: true },
      { of: "status", as: status, by: "status" },
      { of: "risk", as: severity, by: "-risk", low: 1 },
      { of: "model", as: cut, low: 2 },
      { of: "owner", as: cut, by: "owner", low: 3 },
      { of: "source", as: words, low: 3 },
      { label: "Requests, 24 h", of: "requests_24h", as: compact, by: "-requests", align: "end", low: 1 },
      { label: "Blocked, 24 h", of: "blocks_24h", as: compact, by: "-blocks", align: "end", low: 2 },
      { of: "last_seen", as: ago, by: "-last_seen", low: 1 },
    ],
  });
  fill(tools, mayAct && button("Import", () => bringIn(list.reload)), mayAct && button("Register agent", () => formDialog("Register agent", fields(), (given) => api.post("/api/agents", given), { label: "Register", told: "Agent registered.", done: list.reload }), ADD));
  fill(main, filters([{ name: "search", placeholder: "Name, owner, tag" }, { name: "status", options: ["", ...STATES] }, { name: "risk", options: ["", "high", "medium", "low"] }, { name: "source", options: ["", "traffic", "mcp", "manual", "import"] }],
    values, (change) => { values = context.filter(change); list.restart(); }, list.count), h("section.panel", list.node));
  const show = detail(context, ["agents"], (id) => one(id, context, list.reload));
  show(here);
  return { moved: show, press: list.press };
}

const fields = (agent) => [
  !agent && { name: "name", required: true, hint: "The name that it sends in X-Service-Agent." },
  { name: "owner" }, { name: "role" }, { name: "model" },
  { name: "tools", type: "list", hint: "Names, separated by commas." }, { name: "tags", type: "list" },
];

function bringIn(done) {
  const box = dialog("Import agents", form([{ name: "text", label: "Agents as JSON", type: "area", rows: 10, required: true, placeholder: '[{"name": "crm-bot", "owner": "sales", "tools": ["search"]}]', hint: "A list. Creates new agents and changes known ones: all or none." }], async ({ text }) => {
    let agents;
    try { agents = JSON.parse(text); } catch { throw Object.assign(new Error("This is not JSON."), { param: "text" }); }
    return api.post("/api/agents/import", { agents: Array.isArray(agents) ? agents : agents.agents });
  }, { label: "Import", cancel: () => box.close(), done: (made) => { box.close(); toast(`${made.created} created, ${made.changed} changed, ${made.unchanged} unchanged.`); done(); } }));
}

function one(id, context, changed) {
  const body = h("div.stack");
  const again = load(body, () => api.get(at("agents", id), {}, context.signal), (agent) => {
    const after = () => { again(); changed(); };
    const set = (to, told) => async () => { await keep("agents", agent, { status: to }); toast(told); after(); };
    return [
      h("div.row-line", status(agent.status), severity(agent.risk), h("span.dim", "risk")), h("h2", agent.name),
      context.can("agents:manage") && h("div.row-line",
        button("Change", () => formDialog(`Change ${agent.name}`, fields(agent), (given) => keep("agents", agent, given), { of: agent, told: "Changed.", done: after })),
        agent.status === "blocked" || agent.status === "retired" ? button("Unblock", set("active", "The agent may use the gateway again.")) : [
          button("Retire", set("retired", "Agent retired.")),
          button("Block", () => confirm(`Block ${agent.name}?`, "From now on, the gateway refuses its requests, with any key.", "Block", set("blocked", "Agent blocked.")), { kind: "danger" })]),
      facts(["Owner", agent.owner], ["Role", agent.role], ["Model", agent.model], ["Source", words(agent.source)], ["First seen", time(agent.first_seen, "never")], ["Last seen", time(agent.last_seen, "never")], ["Tags", tags(agent.tags)]),
      h("div", h("h3", "Tools"), tags(agent.tools)),
      activity(context, { agent: agent.name }, context.can("alerts:read") && h("a.btn", { href: context.link("alerts", [], { agent: agent.name, scope: "all" }) }, "Its alerts")),
    ];
  });
  return { title: "Agent", body };
}
