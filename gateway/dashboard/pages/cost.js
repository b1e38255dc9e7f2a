// Cost: what was spent and on what, budgets and how they will stand at the end of their period.

import { api, at } from "../api.js";
import { bars, meter, series } from "../charts.js";
import { ago, compact, dollars, fill, h, microusd, percent, time } from "../dom.js";
import { formDialog } from "../form.js";
import { RANGES, timeFilter, zoneFilter } from "../filters.js";
import { keep } from "../records.js";
import { ADD, button, confirm, empty, facts, headed, load, panel, stat, status, toast, words } from "../ui.js";

const amount = (value, unit) => (unit === "usd" ? dollars(value) : `${compact(value)} ${unit}`);
const PER = { hour: "an hour", day: "a day", week: "a week", month: "a month" };

export async function draw(context, here) {
  const { main, tools, can, signal } = context;
  let period = { since: "7d", ...here.query };
  const spend = h("div"), top = h("div.grid3"), body = h("div.cards");
  const mayAct = can("budgets:manage");
  const range = timeFilter({ options: RANGES }, period, (given) => { period = context.filter(given); sum(); });
  const sum = can("traffic:read") ? load(spend, () => api.get("/api/traffic/summary", { since: period.since, until: period.until }, signal), (found) => {
    const cost = (name, label) => panel(label, found.top[name]?.some((one) => one.cost_microusd || one.tokens) ? bars(found.top[name].filter((one) => one.cost_microusd || one.tokens).sort((one, other) => other.cost_microusd - one.cost_microusd).slice(0, 8).map((one) => ({ label: one.value || "none", value: one.cost_microusd || 0, note: `${compact(one.tokens)} tokens in ${compact(one.requests)} requests` })), { show: microusd, label }) : empty("Nothing spent."));
    fill(top, cost("models", "By model"), cost("agents", "By agent"), cost("keys", "By key"));
    return [h("div.stats", stat("Spent", microusd(found.totals.cost_microusd)), stat("Tokens in", compact(found.totals.prompt_tokens)), stat("Tokens out", compact(found.totals.reply_tokens)), stat("Per 1,000 requests", microusd(found.totals.requests ? (found.totals.cost_microusd / found.totals.requests) * 1000 : null))),
      series(found.series.map((one) => ({ at: one.at, cost: one.cost_microusd / 1e6 })), [{ key: "cost", label: "Spent", name: "one" }], { label: "Spent over time", show: dollars, height: 160 })];
  }) : () => {};
  const again = load(body, () => api.page("/api/budgets", {}, signal), ({ items }) => (items.length ? items.map((one) => card(one, mayAct, again)) : empty("No budgets yet. A budget limits spending for a key, an agent, a model, a provider or everything.")));
  fill(tools, can("traffic:read") && range, zoneFilter(), mayAct && button("New budget", () => make(again), ADD));
  fill(main, can("traffic:read") && headed("Spending", null, spend), h("h2", "Budgets"), body, top);
  const slow = setInterval(() => document.hidden || again(), 30000);
  signal.addEventListener("abort", () => clearInterval(slow));
  return {};
}

function card(one, mayAct, again) {
  const share = one.effective_limit ? one.spent / one.effective_limit : 1, ends = one.forecast / (one.effective_limit || 1);
  const after = () => again();
  return h("section.panel", h("header.panel-head", h("h2", one.name || words(one.scope)), h("div.tools", status(one.status))),
    h("div.stack.tight", h("p", h("b", amount(one.spent, one.unit)), h("span.dim", ` of ${amount(one.effective_limit, one.unit)} ${PER[one.window]}, ${percent(share, 0)}`)),
      meter(share, { label: `${one.name || one.scope}: spent`, kind: one.status === "exceeded" ? "bad" : one.status === "warning" ? "soso" : "good", mark: one.soft_pct / 100 }),
      h("p.dim.small", `At this pace ${amount(one.forecast, one.unit)} at the end (${percent(ends, 0)}); resets `, ago(one.resets_at), one.reserved > 0 && `; ${amount(one.reserved, one.unit)} reserved`, "."),
      facts(["Scope", one.scope === "global" ? "Everything" : `${words(one.scope)} ${one.scope_value}`], ["At the limit", one.action === "block" ? "Refuse" : "Only warn"]),
      one.override && h("div.banner.soso", h("span", "Raised to ", h("b", amount(one.override.limit, one.unit)), " until ", time(one.override.until), ` by ${one.override.by}: ${one.override.reason}`), mayAct && button("End", async () => { await api.remove(at("budgets", one.id, "override")); toast("The regular limit applies again."); after(); }, { kind: "small" })),
      mayAct && h("div.row-line", button("Change", () => formDialog("Change budget", [...basics(one)], (values) => keep("budgets", one, values), { told: "Changed.", done: after }), { kind: "small" }),
        button("Raise temporarily", () => formDialog("Raise the limit temporarily", [{ name: "limit", label: `Limit in ${one.unit}`, type: "number", step: "any", min: 0, value: one.effective_limit, required: true }, { name: "until", type: "expiry", days: "1", most: 90 }, { name: "reason", label: "Why", required: true }], (values) => api.post(at("budgets", one.id, "override"), { ...values, version: one.version }), { label: "Raise", told: "Raised.", done: after }), { kind: "small" }),
        button("Remove", () => confirm("Remove this budget?", "Its limit no longer applies, and what it counted is deleted.", "Remove", async () => { await api.remove(at("budgets", one.id)); toast("Budget removed."); after(); }), { kind: "small" }))));
}

const basics = (one) => [
  { name: "name", value: one?.name || "", max_chars: 100 },
  { name: "limit", label: one ? `Limit in ${one.unit}` : "Limit", type: "number", step: "any", min: 0, value: one?.limit, required: true },
  { name: "soft_pct", label: "Warn from, in percent", type: "number", min: 1, max: 100, value: one?.soft_pct ?? 80, required: true },
  { name: "action", label: "At the limit", value: one?.action || "block", options: [["block", "Refuse further requests"], ["warn", "Only warn"]] },
];

const make = (again) => formDialog("New budget", [
  { name: "scope", options: [["global", "Everything"], ["key", "A key"], ["agent", "An agent"], ["model", "A model"], ["provider", "A provider"]] },
  { name: "scope_value", hint: "The key’s prefix or id, or the name.", when: (values) => values.scope !== "global" },
  { name: "unit", options: [["usd", "US dollars"], ["tokens", "Tokens"], ["requests", "Requests"]] },
  { name: "window", value: "day", options: [["hour", "Hour"], ["day", "Day"], ["week", "Week"], ["month", "Month"]] },
  ...basics(null),
], ({ scope_value, ...values }) => api.post("/api/budgets", { ...values, scope_value: values.scope === "global" ? undefined : scope_value }), { label: "Create budget", told: "Budget created. It applies at once.", done: again });
