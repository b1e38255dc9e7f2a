// Every request that passed the shield, as they come. A row opens what each rule gave to its score.

import { api, at, session } from "../api.js";
import { fill, h, icon, isNone, millis, microusd, number, time } from "../dom.js";
import { formDialog } from "../form.js";
import { verdicts } from "../charts.js";
import { SINCE, suggested } from "../filters.js";
import { name, nameOf, ruleLink } from "../names.js";
import { browse, keep } from "../records.js";
import { button, code, confirm, copy, empty, facts, load, severity, toast, verdict, words } from "../ui.js";
import { cut } from "../table.js";
import { harmlessDialog } from "./harmless.js";
import { revoke } from "./keys.js";
import { CATEGORIES } from "./policies.js";

const GUARDRAILS = { litellm: "LiteLLM", moderations: "Moderations", lakera: "Lakera Guard", portkey: "Portkey", agentgateway: "agentgateway", fms: "FMS detector", llm_guard: "LLM Guard" };

export async function draw(context, here) {
  const { tools, link, can, signal } = context;
  let known = new Set(), fresh = new Set(), paused = false;
  const hold = button("Pause", () => { paused = !paused; hold.lastChild.textContent = paused ? "Resume" : "Pause"; if (!paused) page.reload(); }, { kind: "small" });
  fill(tools, can("shield:read") && h("a.btn", { href: link("shield") }, icon("shield"), "Scan a text"), hold);
  const sums = h("section.panel");
  const page = browse(context, here, {
    label: "Requests", sorted: "-time", path: "/api/traffic", hasNames: true, news: ["traffic"], mayRead: () => !paused, above: sums,
    pane: ["Request", (row, again) => one(row, context, again)],
    fields: [
      SINCE,
      { name: "search", placeholder: "req_…, agent, key, rule" },
      { name: "verdict", options: ["", ["BLOCK", "Blocked"], ["REVIEW", "For review"], ["ALLOW", "Allowed"]] },
      { name: "operation", options: ["", ["shield.scan", "Scan"], ["chat.completions", "Chat"], ...Object.entries(GUARDRAILS).map(([id, label]) => [`guardrail.${id}`, label])] },
      { name: "category", options: ["", ...CATEGORIES], uncounted: true },
      { name: "direction", options: ["", ["inbound", "Inbound: prompt"], ["outbound", "Outbound: reply"]], uncounted: true },
      { name: "status", label: "HTTP status", options: ["", "200", "400", "403", "404", "429", "500", "502", "503", "504"], uncounted: true },
      suggested("agent"), suggested("key", { placeholder: "svc_…" }), suggested("model"), suggested("provider"), suggested("rule"),
    ],
    changed: () => { known = new Set(); again(); },
    arrived: (items) => {
      fresh = new Set(known.size ? items.map((row) => row.id).filter((id) => !known.has(id)) : []);
      known = new Set(items.map((row) => row.id));
    },
    mark: (row) => fresh.has(row.id) && "fresh",
    none: "No request matches. Choose a longer time or clear some filters.",
    columns: [
      { label: "Time", of: "occurred_at", as: time, by: "-time" },
      { of: "verdict", as: verdict, by: "-verdict" },
      { of: "score", as: number, by: "-score" },
      { label: "Rules", low: 1, cell: ({ detections: [first, ...rest] }) => (first ? h("span.cut", { title: [first, ...rest].map((each) => each.rule).join(", ") }, nameOf(first.rule), rest.length > 0 && h("span.dim", ` +${rest.length}`)) : h("span.dim", "–")) },
      { of: "agent", as: cut, low: 1 },
      { label: "Key", of: "key_prefix", as: name, low: 2 },
      { of: "model", as: cut, low: 2 },
      { of: "action", as: words, low: 3 },
      { label: "Tokens", by: "-tokens", align: "end", low: 2, cell: (row) => (isNone(row.prompt_tokens) ? "–" : number(row.prompt_tokens + (row.reply_tokens || 0))) },
      { label: "Duration", by: "-latency", align: "end", low: 1, cell: (row) => millis(row.elapsed_us / 1000) },
    ],
  });
  const again = load(sums, () => { const { since, until } = page.wanted(); return api.get("/api/traffic/summary", { since, until }, signal); }, (summary) => overview(summary, page));
  return page;
}

const FACETS = { verdicts: "Verdict", rules: "Rule", agents: "Agent", keys: "Key", models: "Model", providers: "Provider" };

/** All requests of the time over time, to be narrowed by dragging; and what they have most, to be filtered by. */
function overview(summary, { wanted, apply, bar }) {
  const values = wanted();
  const { requests, blocks, reviews } = summary.totals;
  const top = { verdicts: [["BLOCK", blocks], ["REVIEW", reviews], ["ALLOW", requests - blocks - reviews]].map(([value, count]) => ({ value, requests: count })), ...summary.top };
  const chip = (field, one) => { const chosen = values[field] === one.value; return h(`button.chip${chosen ? ".on" : ""}`, { type: "button", "aria-pressed": String(chosen), onclick: () => apply({ [field]: chosen ? "" : one.value }) }, name(one.value), " ", h("b", number(one.requests))); };
  return h("div.stack", verdicts(summary, { label: "All requests by verdict", height: 120, pick: (since, until) => bar.elements.since.set(since, until) }),
    h("details.more", h("summary", "Most frequent in this time"), h("dl.facets", Object.entries(FACETS).map(([list, label]) => { const found = (top[list] || []).filter((one) => one.requests && !one.value.startsWith("(")).slice(0, 6); return found.length ? h("div", h("dt", label), h("dd", found.map((one) => chip(list.slice(0, -1), one)))) : null; }))));
}

/** Show one request. */
function one(row, context, again) {
  return [
    h("div.row-line", verdict(row.verdict), h("b", `Score ${row.score}`), row.action !== "none" && h("span.dim", words(row.action)), row.status !== 200 && h("span.tag", `HTTP ${row.status}`)),
    facts(["Time", time(row.occurred_at)], ["Operation", code(row.operation)], ["Agent", row.agent], ["Key", row.key_prefix ? name(row.key_prefix) : row.principal_id], ["Model", row.model], ["Provider", row.provider], ["Direction", words(row.direction)],
      ["Text", `${number(row.text_chars)} characters`], ["Tokens", isNone(row.prompt_tokens) ? null : `${number(row.prompt_tokens)} in, ${number(row.reply_tokens)} out`], ["Cost", microusd(row.cost_microusd)], ["Duration", `${millis(row.elapsed_us / 1000)}, including ${millis(row.overhead_us / 1000)} in the gateway`], ["Request", code(row.request_id)]),
    ledger(row.ledger, row.score),
    row.captures.map(captured),
    !row.captures.length && h("details.more", h("summary", "Why the text is not shown"), h("p.dim", "The gateway stores the verdict, rules, places and a hash. It stores the text only if the key's policy says so. Only policy managers can see unmasked text. SHA-256 of ", row.ledger.length ? "the text with the strongest finding: " : "the message texts, joined with line breaks: ", code(row.text_sha256), ".")),
    h("div.row-line", actions(row, context, again)),
    h("div.row-line", Object.entries(COPIES).map(([label, text]) => button(label, () => copy(text(row)), { kind: "small", sign: "copy" }))),
  ];
}

/** A text that a policy keeps. It is somebody else's, so that it is only ever put there as text. */
function captured(one) {
  const name = one.direction === "inbound" ? "Prompt text" : "Reply text";
  return h("details.more", h("summary", name, " ", h("span.tag", one.mode === "full" ? "in full" : "masked")), h("p.dim", "Stored until ", time(one.expires_at), one.is_cut && ". Truncated."), h("pre.json", one.text));
}

/** What each rule gave to a score, to be added up by hand. */
export function ledger(lines, total) {
  if (!lines.length) return empty("No rule matched.");
  return h("div", h("h3", "Score ledger"), h("div.table-scroll", h("table.ledger", h("thead", h("tr", h("th", "Rule"), h("th", "Severity"), h("th.end", "Count"), h("th.end", "Points"))),
    h("tbody", lines.map((line) => h("tr", h("td", ruleLink(line.rule, line.name || line.rule), line.accepted && h("span.tag", "accepted"), h("div.dim.small", line.description || said(line) || line.rule), line.end > 0 && h("div.dim.small", "Seen as ", code(line.view), line.place ? [" in ", code(line.place)] : null, ` at ${line.start}–${line.end}`), evidence(line)), h("td", severity(line.severity)), h("td.end", number(line.count)), h("td.end", h("b", number(line.score)))))),
    h("tfoot", h("tr", h("td", { colspan: "3" }, "Score"), h("td.end", number(total)))))));
}

/** What a detector said of a text, and how long it took. */
const said = (line) => line.rule.startsWith("detector:") && (line.label === "error" ? "Gave no judgement" : `Says ${line.label || "yes"}${line.confidence === undefined ? "" : ` with probability ${number(line.confidence)}`}`) + `, after ${millis(line.elapsed_ms || 0)}`;

/** Which text a finding stands in: the way it went, its hash, and the mask of a secret. Lists of before have none. */
export function evidence(line) {
  if (!line.sha256) return null;
  return h("div.dim.small", line.direction ? `${words(line.direction)} text` : "Text", ` of ${number(line.chars)} characters`, line.spread && ", and others", line.matched && [", found ", code(line.matched)], ", SHA-256 ", code(line.sha256));
}

const NEAR_MS = 600000;

function actions(row, { can, link }, again) {
  const near = (ms) => new Date(Date.parse(row.occurred_at) + ms).toISOString();
  return [
    row.ledger.length > 0 && can("alerts:manage") && button("This was harmless", () => harmlessDialog(row.request_id, again)),
    row.ledger.length > 0 && can("alerts:read") && h("a.btn", { href: link("alerts", [], { request_id: row.request_id }) }, "Its alerts"),
    row.agent && h("a.btn", { href: link("traffic", [], { agent: row.agent, since: near(-NEAR_MS), until: near(NEAR_MS) }) }, "Same agent, ±10 minutes"),
    row.agent && can("agents:manage") && button("Block agent", () => confirm(`Block ${row.agent}?`, "From now on, the gateway refuses its chats, with any key, until someone unblocks it. A caller chooses its agent name.", "Block", () => block(row.agent)), { kind: "danger" }),
    row.key_prefix && can("access:manage") && button("Deny key", () => formDialog("Deny this key for a day", [{ name: "reason", required: true }], ({ reason }) => api.post("/api/access", { list: "deny", type: "KEY", value: row.key_prefix, reason, expires_at: new Date(Date.now() + 86400000).toISOString() }), { label: "Deny", told: "The key is denied for a day." }), { kind: "danger" }),
    row.key_prefix && can("api_keys:manage") && button("Revoke key", () => revoke(row.key_prefix, nameOf(row.key_prefix), again), { kind: "danger" }),
  ];
}

/** Block an agent, also one that is not listed yet. */
async function block(agent) {
  const known = (await api.all("/api/agents", { search: agent })).find((one) => one.name.toLowerCase() === agent.toLowerCase());
  await keep("agents", known, { status: "blocked", ...(known ? {} : { name: agent }) });
  toast("Agent blocked.");
}

const COPIES = {
  "Copy id": (row) => row.request_id,
  "Copy as JSON": (row) => JSON.stringify(row, null, 2),
  "Copy as curl": (row) => `curl -s ${session.asksForUser ? '-b "service_session=$GATEWAY_SESSION" ' : ""}${location.origin}${at("traffic", row.request_id)}`,
};
