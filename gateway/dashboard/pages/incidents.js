// Incidents: the alerts of one agent and key within an hour, handled, stopped and proven as one.

import { api, at, save } from "../api.js";
import { ago, h, number, time } from "../dom.js";
import { formDialog } from "../form.js";
import { SINCE, suggested } from "../filters.js";
import { name, nameOf } from "../names.js";
import { browse } from "../records.js";
import { button, code, dialog, facts, severity, SEVERITIES, status, tag, toast, verdict, words } from "../ui.js";
import { cut } from "../table.js";
import { harmlessDialog, isActive } from "./harmless.js";
import { about, timeline } from "./sentences.js";

const ACTS = [["acknowledged", "Acknowledge"], ["investigating", "Investigate"], ["resolved", "Resolve"], ["false_positive", "False positive"]];
const ASKS = ["resolved", "false_positive"];

export async function draw(context, here) {
  const { can, session } = context, page = browse(context, here, {
    label: "Incidents", sorted: "-last_seen", path: "/api/incidents", hasNames: true, news: ["alert"],
    pane: ["Incident", (row, again) => one(row, context, again)],
    fields: [
      { name: "scope", label: "State", value: "active", options: ["active", ["terminal", "Closed"], "all"] },
      { name: "assigned_to", options: [["", "Anyone"], [session.user.username, "Me"]] },
      { name: "severity", options: ["", ...SEVERITIES] },
      SINCE,
      suggested("agent"), suggested("key", { placeholder: "svc_…" }), suggested("rule"), { name: "request_id", label: "Request", placeholder: "req_…" },
    ],
    none: () => ((page.wanted().scope || "active") === "active" ? "No active incidents." : "No incident matches. Clear some filters."),
    bulk: can("alerts:manage") && ((ids) => [...ACTS.map(([to, label]) => button(label, () => move(ids, to, label, page.reload))), button("Assign", () => assign(ids, session.user.username, page.reload))]),
    columns: [
      { label: "Incident", wide: true, cell: (row) => h("span", cut(row.title), row.alerts > 1 && h("span.dim", ` +${row.alerts - 1}`)) },
      { of: "severity", as: severity, by: "-severity" },
      { of: "status", as: status, low: 1 },
      { of: "agent", as: cut },
      { label: "Key", of: "key_prefix", as: name, low: 2 },
      { of: "requests", as: number, by: "-requests", low: 2 },
      { label: "Age", of: "first_seen", as: ago, by: "-first_seen", low: 1 },
      { of: "last_seen", as: ago, by: "-last_seen", low: 3 },
      { of: "assigned_to", as: cut, low: 3 },
    ],
  });
  return page;
}

async function send(ids, change, done) {
  const { incidents, unchanged } = await api.patch("/api/incidents", { ids, ...change });
  const changed = incidents.length - unchanged.length, kept = unchanged.length ? ` ${unchanged.length} cannot take this state and stayed as ${unchanged.length === 1 ? "it was" : "they were"}.` : "";
  toast(`${changed === 1 ? "1 incident" : `${changed} incidents`} changed.${kept}`, unchanged.length ? "bad" : "good");
  done();
}

function move(ids, to, label, done) {
  if (!ASKS.includes(to)) return send(ids, { status: to }, done);
  return formDialog(`${label}: ${ids.length === 1 ? "incident" : `${ids.length} incidents`}`, [
    { name: "note", label: to === "resolved" ? "What was done" : "Why", type: "area", rows: 3, required: true },
  ], ({ note }) => send(ids, { status: to, note }, done), { label });
}

const assign = (ids, me, done) => formDialog("Assign", [{ name: "assigned_to", label: "To", value: me, hint: "Empty for nobody." }], ({ assigned_to }) => send(ids, { assigned_to: assigned_to || "" }, done), { label: "Assign" });

function one(incident, context, after) {
  const { can, link } = context, { id } = incident;
  const open = incident.status !== "closed", ofRequest = incident.members.filter((alert) => alert.source === "shield" && alert.request_id), found = ofRequest.findLast(isActive) || ofRequest.at(-1);
  return [
    h("div.row-line", severity(incident.severity), status(incident.status), h("span.dim", `${number(incident.alerts)} alerts, ${number(incident.requests)} requests`)),
    h("h2", incident.title),
    can("alerts:manage") && open && h("div.row-line", ACTS.slice(0, 3).map(([to, label]) => button(label, () => move([id], to, label, after), { kind: to === "acknowledged" ? "primary" : "" })),
      found && button("This was harmless", () => harmlessDialog(found.id, after)), button("Assign", () => assign([id], incident.assigned_to || context.session.user.username, after)),
      (incident.key_prefix || incident.agent) && button("Stop this", () => stop(incident, context, after), { kind: "danger" })),
    can("audit:read") && h("div.row-line", h("span.dim", "Export evidence:"), ["html", "json"].map((format) => button(format.toUpperCase(), () => evidence(id, format), { kind: "small", sign: "down" }))),
    facts(...about(incident)),
    h("div", h("h3", "Alerts"), h("ul.list", incident.members.map((alert) => h("li", severity(alert.severity), h("a.grow", { href: link("alerts", [alert.id]) }, alert.title), h("span.dim", `${number(alert.count)} ×`), status(alert.status))))),
    can("traffic:read") && h("div", h("h3", "Requests"), incident.traffic.length ? h("ul.list", incident.traffic.map((row) => h("li", time(row.occurred_at), verdict(row.verdict), h("a.grow", { href: link("traffic", [row.request_id]) }, [...new Set(row.detections.map((each) => nameOf(each.rule)))].join(", ") || row.operation), masked(row)))) : h("p.dim", "No longer stored.")),
    h("div", h("h3", "The same secrets elsewhere"), incident.elsewhere.length ? h("ul.list", incident.elsewhere.map((seen) => h("li", code(seen.matched), h("a.grow", { href: link("traffic", [seen.request_id]) }, [seen.agent, nameOf(seen.key_prefix)].filter(Boolean).join(", ") || seen.request_id), h("span.dim", words(seen.direction)), time(seen.occurred_at)))) : h("p.dim", "In no other stored request.")),
    timeline(incident.timeline),
  ];
}

const masked = (row) => row.detections.filter((each) => each.matched).slice(0, 3).map((each) => tag(each.matched));

async function evidence(id, format) {
  const { text, type } = await api.text(at("incidents", id, "evidence"), { format });
  save(`${id}.${format}`, text, type);
  toast(format === "json" ? `Saved. Verify it with: audit verify --evidence ${id}.json` : "Saved.");
}

/** Ask what to stop, and say of each act whether it was done. */
function stop(incident, { can }, done) {
  const key = incident.key_prefix, agent = incident.agent;
  formDialog("Stop this", [
    { name: "acts", label: "What to stop, at once and in every worker", type: "checks", required: true, options: [
      key && can("access:manage") && ["deny_key", `Deny the key ${key} for a day`, "The access list refuses it. You can remove the entry."],
      key && can("api_keys:manage") && ["revoke_key", `Revoke the key ${key}`, "You cannot undo this."],
      agent && can("agents:manage") && ["block_agent", `Block the agent ${agent}`, "Its chats are refused until someone unblocks it. A caller chooses its agent name."],
    ].filter(Boolean) },
    { name: "reason", label: "Why", required: true, max_chars: 200 },
  ], ({ acts, reason }) => api.post(at("incidents", incident.id, "stop"), { reason, ...Object.fromEntries(acts.map((act) => [act, true])) }), {
    label: "Stop", kind: "danger", done: ({ acts }) => {
      const failed = acts.filter((act) => !act.done), names = (list) => list.map((act) => words(act.act).toLowerCase()).join(", ");
      if (failed.length) dialog("Not everything was stopped", [h("p", acts.length > failed.length ? `Done: ${names(acts.filter((act) => act.done))}.` : "Nothing was done."), h("ul", failed.map((act) => h("li", h("b", words(act.act)), `: ${act.why}`)))]);
      else toast(`Done: ${names(acts)}.`);
      done();
    },
  });
}
