// The queue of alerts: what each is about, what led to it, and who does something about it.

import { api, at } from "../api.js";
import { ago, fill, h, number, plain, time } from "../dom.js";
import { formDialog } from "../form.js";
import { SINCE, suggested } from "../filters.js";
import { nameOf, ruleLink } from "../names.js";
import { browse, keep } from "../records.js";
import { button, code, facts, failed, SEVERITIES, severity, status, tag, toast, words } from "../ui.js";
import { cut } from "../table.js";
import { evidence as hash } from "./traffic.js";
import { about, timeline } from "./sentences.js";
import { harmlessDialog } from "./harmless.js";

const STATES = { acknowledged: "Acknowledge", investigating: "Investigate", resolved: "Resolve", false_positive: "False positive", suppressed: "Suppress", open: "Reopen" };
const ASKS = ["resolved", "false_positive", "suppressed"];
const LEADS = { open: ["acknowledged", "investigating", ...ASKS], acknowledged: ["investigating", ...ASKS], investigating: ASKS, ...Object.fromEntries(ASKS.map((one) => [one, ["open"]])) };

export async function draw(context, here) {
  const { tools, link, can, session } = context;
  const mayAct = can("alerts:manage");
  const quick = (row, to) => { if (mayAct && LEADS[row.status].includes(to)) move(row, to, page.reload); };
  const page = browse(context, here, {
    label: "Alerts", sorted: "-first_seen", path: "/api/alerts", hasNames: true, read: whole, change: apart, news: ["alert"],
    pane: ["Alert", (row, again) => one(row, context, again)],
    fields: [
      { name: "request_id", label: "Request", placeholder: "req_…" },
      { name: "scope", label: "Active or closed", value: "active", options: ["active", ["terminal", "Closed"], "all"] },
      { name: "severity", options: ["", ...SEVERITIES] },
      { name: "status", options: ["", ...Object.keys(LEADS)] },
      { name: "source", options: ["", "shield", "auth", "budget", "access", "provider", "detector", "fleet", "integrity"] },
      suggested("rule"), suggested("agent"),
      { name: "assigned_to", options: [["", "Anyone"], [session.user.username, "Me"]] },
      SINCE,
    ],
    none: () => (page.wanted().scope === "active" ? "No active alerts. Everything has been handled." : "No alert matches. Clear some filters."),
    keys: { a: (row) => quick(row, "acknowledged"), r: (row) => quick(row, "resolved") },
    tools: mayAct ? (row) => h("span.row-line", LEADS[row.status].slice(0, 1).map((to) => button(STATES[to], () => move(row, to, page.reload)))) : null,
    columns: [
      { label: "Alert", of: "title", as: cut, wide: true },
      { of: "severity", as: severity, by: "-severity" },
      { of: "status", as: status, by: "status", low: 1 },
      { of: "source", as: words, low: 3 },
      { label: "Agent or key", low: 2, cell: (row) => cut(row.agent || nameOf(row.key_prefix), row.key_prefix) },
      { of: "count", as: number, by: "-count", low: 2 },
      { of: "first_seen", as: ago, by: "-first_seen", low: 3 },
      { of: "last_seen", as: ago, by: "-last_seen", low: 1 },
      { label: "Assigned to", low: 3, cell: (row) => cut(row.assigned_to || row.acknowledged_by) },
    ],
  });
  fill(tools, h("a.btn", { href: link("incidents") }, "Incidents"));
  return page;
}

/** Return filters that go together: a state or a request is looked for among all alerts, not only among active ones. */
const whole = (query) => ({ ...query, scope: query.status || query.request_id ? "all" : query.scope || "active", status: query.status || "" });
/** Return a change of filters with what it clears. */
const apart = (change) => ({ ...change, ...(change.status ? { scope: "" } : change.scope ? { status: "" } : {}) });

/** Bring an alert into another state, with a word about it where it ends. */
function move(alert, to, changed) {
  const send = (body) => api.patch(at("alerts", alert.id), { status: to, version: alert.version, ...body });
  const told = `Alert: ${words(to).toLowerCase()}.`;
  if (!ASKS.includes(to)) { send({}).then(() => { toast(told); changed(); }, failed); return; }
  formDialog(`${STATES[to]}: ${alert.title}`, [
    to === "suppressed" && { name: "suppressed_until", label: "Until", type: "expiry", days: "7", most: 90, hint: "The alert reopens if the event repeats after this time." },
    { name: "note", label: to === "resolved" ? "What was done" : "Why", type: "area", rows: 3, required: to !== "resolved", blank: undefined },
  ], (values) => send({ ...values, note: values.note || undefined }), { label: STATES[to], told, done: changed });
}

const isOfRequest = (alert) => alert.source === "shield" && Boolean(alert.request_id);

function one(alert, context, after) {
  return [
    h("div.row-line", severity(alert.severity), status(alert.status), tag(words(alert.source)), alert.count > 1 && h("span.dim", `${number(alert.count)} times`)),
    h("h2", alert.title), h("p", alert.description),
    context.can("alerts:manage") && h("div.row-line", LEADS[alert.status].map((to) => button(isOfRequest(alert) && to === "false_positive" ? "This was harmless" : STATES[to], () => (isOfRequest(alert) && to === "false_positive" ? harmlessDialog(alert.id, after) : move(alert, to, after)), { kind: to === "acknowledged" ? "primary" : "" })),
      button("Assign", () => formDialog("Assign", [{ name: "assigned_to", label: "To", value: alert.assigned_to || context.session.user.username, required: true }], (values) => keep("alerts", alert, values), { label: "Assign", told: "Assigned.", done: after }))),
    facts(["Rule", isOfRequest(alert) ? ruleLink(alert.rule) : alert.rule], ...about(alert), ["Operation", alert.origin && code(alert.origin)],
      ["Request", alert.request_id && (context.can("traffic:read") ? h("a", { href: context.link("traffic", [alert.request_id]) }, alert.request_id) : code(alert.request_id))], alert.resolution && ["Resolution", alert.resolution], alert.suppressed_until && ["Suppressed until", time(alert.suppressed_until)], alert.acceptance && ["Accepted by", h("a", { href: context.link("shield", ["acceptances"]) }, alert.acceptance)]),
    alert.evidence.length ? h("div", h("h3", "Evidence"), alert.evidence.map(evidence)) : null,
    timeline(alert.timeline),
  ];
}

function evidence(item) {
  const lines = item.detections || (item.rule ? [item] : []);
  const rest = Object.entries(item).filter(([name]) => name !== "detections" && (lines.length !== 1 || lines[0] !== item));
  return h("div.stack.tight", rest.length ? facts(...rest.map(([name, value]) => [words(name), name.endsWith("_at") && typeof value === "string" ? time(value) : plain(value)])) : null,
    lines.length ? h("ul.list", lines.map((line) => h("li", severity(line.severity), h("span.grow", ruleLink(line.rule), " ", h("span.dim", `${line.view} ${line.start}–${line.end}${line.place ? ` in ${line.place}` : ""}`), hash(line)), h("b", `${line.score} points`)))) : null);
}
