// Every request that passed the shield, as they come. A row opens what each rule gave to its score.

import { afterNews, api, at } from "../api.js";
import { fill, h, icon, millis, microusd, number, time } from "../dom.js";
import { formDialog } from "../form.js";
import { verdicts } from "../charts.js";
import { filters, SINCE, suggested } from "../filters.js";
import { button, code, confirm, empty, facts, load, severity, toast, verdict, words } from "../ui.js";
import { cut, table } from "../table.js";
import { detail } from "./detail.js";
import { harmlessDialog } from "./harmless.js";

export async function draw(context, here) {
  const { main, tools, link, can, signal } = context;
  let values = here.query, known = new Set(), fresh = new Set(), paused = false;
  const hold = button("Pause", () => { paused = !paused; hold.lastChild.textContent = paused ? "Resume" : "Pause"; if (!paused) list.reload(); }, { kind: "small" });
  fill(tools, can("shield:read") && h("a.btn", { href: link("shield") }, icon("shield"), "Scan a text"), hold);
  const list = table({
    label: "Requests",
    context, sorted: "-time", path: "/api/traffic", values: (change) => pick({ ...values, ...change }),
    arrived: (items) => {
      const before = known;
      known = new Set(items.map((one) => one.id));
      fresh = before.size ? new Set([...known].filter((id) => !before.has(id))) : new Set();
    },
    href: (row) => link("traffic", [row.id], context.place().query),
    mark: (row) => fresh.has(row.id) && "fresh",
    none: "No request matches. Choose a longer time or clear some filters.",
    columns: [
      { label: "Time", of: "occurred_at", as: time, by: "-time" },
      { of: "verdict", as: verdict, by: "-verdict" },
      { of: "score", as: number, by: "-score" },
      { label: "Rules", low: 1, cell: (row) => (row.detections.length ? h("span", { title: row.detections.map((one) => one.rule).join(", ") }, row.detections[0].rule, row.detections.length > 1 && h("span.dim", ` +${row.detections.length - 1}`)) : h("span.dim", "–")) },
      { label: "Agent", low: 1, cell: (row) => h("span.cut", { title: row.agent || "" }, row.agent || "–") },
      { label: "Key", low: 2, cell: (row) => code(row.key_prefix || "–") },
      { of: "model", as: cut, low: 2 },
      { of: "action", as: words, low: 3 },
      { label: "Tokens", by: "-tokens", align: "end", low: 2, cell: (row) => (row.prompt_tokens === null ? "–" : number((row.prompt_tokens || 0) + (row.reply_tokens || 0))) },
      { label: "Duration", by: "-latency", align: "end", low: 1, cell: (row) => millis(row.elapsed_us / 1000) },
    ],
  });
  const apply = (change) => {
    values = context.filter(change);
    for (const [name, value] of Object.entries(change)) if (bar.elements[name] && name !== "since") bar.elements[name].value = value;
    bar.dispatchEvent(new Event("change"));
    known = new Set();
    list.restart();
    again();
  };
  const sums = h("section.panel"), bar = filters([
    SINCE,
    { name: "search", placeholder: "req_…, agent, key, rule" },
    { name: "verdict", options: [["", "Any"], ["BLOCK", "Blocked"], ["REVIEW", "For review"], ["ALLOW", "Allowed"]] },
    { name: "operation", options: [["", "Any"], ["shield.scan", "Scan"], ["chat.completions", "Chat"], ...["litellm LiteLLM", "moderations Moderations", "lakera Lakera Guard", "portkey Portkey", "agentgateway agentgateway", "fms FMS detector", "llm_guard LLM Guard"].map((one) => [`guardrail.${one.split(" ")[0]}`, one.slice(one.indexOf(" ") + 1)])] },
    suggested("agent", "Agent"), suggested("key", "Key", { placeholder: "svc_…" }), suggested("model", "Model"), suggested("provider", "Provider"), suggested("rule", "Rule"),
  ], values, apply, list.count);
  const again = load(sums, () => api.get("/api/traffic/summary", { since: values.since, until: values.until }, signal), (summary) => overview(summary, values, apply, (since, until) => bar.elements.since.set(since, until)));
  fill(main, bar, sums, h("section.panel", list.node));

  const show = detail(context, ["traffic"], (id) => one(id, context));
  show(here);
  afterNews(context, ["traffic"], () => { if (!paused && list.isFirst) list.reload(); });
  return { moved: show, press: list.press };
}

const pick = ({ since, until, search, verdict: kind, operation, agent, key, model, provider, rule }) => ({ since, until, search, verdict: kind, operation, agent, key, model, provider, rule });

const FACETS = { verdicts: "Verdict", rules: "Rule", agents: "Agent", keys: "Key", models: "Model", providers: "Provider" };

/** All requests of the time over time, to be narrowed by dragging; and what they have most, to be filtered by. */
function overview(summary, values, apply, narrow) {
  const { requests, blocks, reviews } = summary.totals;
  const top = { verdicts: [["BLOCK", blocks], ["REVIEW", reviews], ["ALLOW", requests - blocks - reviews]].map(([value, count]) => ({ value, requests: count })), ...summary.top };
  const chip = (name, one) => { const chosen = values[name] === one.value; return h(`button.chip${chosen ? ".on" : ""}`, { type: "button", "aria-pressed": String(chosen), onclick: () => apply({ [name]: chosen ? "" : one.value }) }, h("span.cut", one.value), " ", h("b", number(one.requests))); };
  return h("div.stack", verdicts(summary, { label: "All requests by verdict", height: 120, pick: narrow }),
    h("details.more", h("summary", "Most frequent in this time"), h("dl.facets", Object.entries(FACETS).map(([list, label]) => { const found = (top[list] || []).filter((one) => one.requests && !one.value.startsWith("(")).slice(0, 6); return found.length ? h("div", h("dt", label), h("dd", found.map((one) => chip(list.slice(0, -1), one)))) : null; }))));
}

/** Show one request. */
function one(id, context) {
  const body = h("div.stack"), acts = h("div.row-line");
  const again = load(body, () => api.get(at("traffic", id), {}, context.signal), (row) => {
    fill(acts, actions(row, context, again));
    return [
      h("div.row-line", verdict(row.verdict), h("b", `Score ${row.score}`), h("span.dim", words(row.action)), row.status !== 200 && h("span.tag", `HTTP ${row.status}`)),
      facts(["Time", time(row.occurred_at)], ["Operation", code(row.operation)], ["Agent", row.agent], ["Key", row.key_prefix ? code(row.key_prefix) : row.principal_id], ["Model", row.model], ["Provider", row.provider], ["Direction", row.direction && words(row.direction)],
        ["Text", `${number(row.text_chars)} characters`], ["Tokens", row.prompt_tokens === null ? null : `${number(row.prompt_tokens)} in, ${number(row.reply_tokens)} out`], ["Cost", microusd(row.cost_microusd)], ["Duration", `${millis(row.elapsed_us / 1000)}, including ${millis(row.overhead_us / 1000)} in the gateway`], ["Request", code(row.request_id)]),
      ledger(row.ledger, row.score),
      row.captures.map(captured),
      !row.captures.length && h("details.more", h("summary", "Why the text is not shown"), h("p.dim", "The gateway stores the verdict, rules, places and a hash. It stores the text only if the key's policy says so. Only policy managers can see unmasked text. SHA-256 of ", row.ledger.length ? "the text with the strongest finding: " : "the message texts, joined with line breaks: ", code(row.text_sha256), ".")),
    ];
  });
  return { title: "Request", body: [body, acts] };
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
    h("tbody", lines.map((line) => h("tr", h("td", h("a", { href: `#/shield/rules/${encodeURIComponent(line.rule)}` }, line.name || line.rule), line.accepted && h("span.tag", "accepted"), h("div.dim.small", line.description || said(line) || line.rule), line.end > 0 && h("div.dim.small", "Seen as ", code(line.view), line.place ? [" in ", code(line.place)] : null, ` at ${line.start}–${line.end}`), evidence(line)), h("td", severity(line.severity)), h("td.end", number(line.count)), h("td.end", h("b", number(line.score)))))),
    h("tfoot", h("tr", h("td", { colspan: "3" }, "Score"), h("td.end", number(total)))))));
}

/** What a detector said of a text, and how long it took. */
const said = (line) => line.rule.startsWith("detector:") && (line.label === "error" ? "Gave no judgement" : `Says ${line.label || "yes"}${line.confidence === undefined ? "" : ` with probability ${number(line.confidence)}`}`) + `, after ${millis(line.elapsed_ms || 0)}`;

/** Which text a finding stands in: the way it went, its hash, and the mask of a secret. Lists of before have none. */
export function evidence(line) {
  if (!line.sha256) return null;
  return h("div.dim.small", line.direction ? `${words(line.direction)} text` : "Text", ` of ${number(line.chars)} characters`, line.spread && ", and others", line.matched && [", found ", code(line.matched)], ", SHA-256 ", code(line.sha256));
}

function actions(row, context, again) {
  const { can } = context;
  return [
    row.ledger.length > 0 && can("alerts:manage") && button("This was harmless", () => harmlessDialog(row.request_id, again)),
    row.ledger.length > 0 && can("alerts:read") && h("a.btn", { href: context.link("alerts", [], { request_id: row.request_id }) }, "Its alerts"),
    row.key_prefix && can("api_keys:manage") && button("Revoke the key", () => confirm("Revoke this key?", `From now on, every worker refuses requests with ${row.key_prefix}. You cannot undo this.`, "Revoke", async () => { await api.post(at("config/api-keys", row.key_prefix, "revoke")); toast("Key revoked."); }), { kind: "danger" }),
    row.key_prefix && can("access:manage") && button("Deny the key for a day", () => formDialog("Deny this key for a day", [{ name: "reason", required: true }], (values) => api.post("/api/access", { list: "deny", type: "KEY", value: row.key_prefix, reason: values.reason, expires_at: new Date(Date.now() + 86400000).toISOString() }), { label: "Deny", told: "The key is denied for a day." })),
  ];
}
