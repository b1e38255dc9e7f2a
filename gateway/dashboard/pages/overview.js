// The first page: five numbers with their change, what happened when, and one list of what needs somebody.

import { api, feed } from "../api.js";
import { bars, score, spark, verdicts } from "../charts.js";
import { ago, compact, fill, h, icon, isNone, microusd, millis, number, percent, time } from "../dom.js";
import { RANGES, timeFilter, zoneFilter } from "../filters.js";
import { button, empty, headed, load, loading, panel, SEVERITIES, status, words } from "../ui.js";

const THREAT = { blocks: "Blocked requests", active_alerts: "Active alerts", auth_failures: "Failed sign-ins and keys", bypass: "Shield only observes", budget_breaches: "Budgets exceeded", offline_instances: "Offline instances" };
const MOST_INCIDENTS = 5, HOUR_MS = 3600000, PAGE = 100;
const iso = (at) => new Date(at).toISOString();

export async function draw(context, here) {
  const { main, tools, can, link, signal } = context;
  const seen = { since: "24h", ...here.query };
  const parts = Object.fromEntries(["banner", "start", "numbers", "flow", "todo", "scores", "agents", "rules"].map((name) => [name, h("div", { data: { part: name } })]));
  const fresh = h("p.dim.small"), known = {}, waiting = [];
  let nameOf = (id) => id;
  const range = timeFilter({ options: RANGES }, seen, (given) => { Object.assign(seen, given); context.filter(given); again.flow(); again.seen?.(); });
  fill(tools, can("traffic:read") && range, zoneFilter());
  fill(main, parts.banner, parts.start, can("traffic:read", "alerts:read") && h("section.panel", parts.numbers), can("traffic:read") && headed("Requests over time", h("span.dim.small", "Select a bar to list its requests"), parts.flow),
    h("div.main-side", headed("Needs you", can("alerts:read") && h("a", { href: link("incidents") }, "All incidents"), parts.todo), can("posture:read") && panel("Scores", parts.scores)),
    can("traffic:read") && h("div.grid2", panel("Top agents by blocked requests", parts.agents), panel("Top rules, with their share of all requests", parts.rules)), fresh);

  const note = () => {
    fill(fresh, "Read ", time(iso(Date.now())), feed.state === "live" ? "; updates live." : feed.state === "polling" ? "; updates every ten seconds." : ".");
    fill(parts.numbers, numbers(known, link));
    fill(parts.todo, todo(known, context));
    banner(parts.banner, known);
  };
  /** Ask for a part and keep it as known. show: draws it into the part of the page that has its name, if it has one. */
  const part = (name, permission, ask, show = () => undefined) => {
    if (!can(permission)) return () => {};
    let first;
    waiting.push(new Promise((resolve) => { first = resolve; }));
    return load(parts[name] || h("div"), async () => { try { known[name] = await ask(); return known[name]; } finally { first(); } }, (value) => { const drawn = show(value); note(); return drawn; });
  };
  const count = async (values) => (await api.page("/api/incidents", { scope: "all", limit: 1, ...values }, signal)).total;

  const again = {
    flow: part("flow", "traffic:read", async () => {
      const sum = await api.get("/api/traffic/summary", { since: seen.since, until: seen.until }, signal);
      return { sum, before: await api.get("/api/traffic/summary", before(sum), signal) };
    }, ({ sum }) => {
      const { totals, top } = sum, agents = top.blocked_agents.filter((one) => one.blocks && !one.value.startsWith("("));
      fill(parts.agents, agents.length ? bars(agents.slice(0, 8).map((one) => ({ label: one.value, value: one.blocks, href: link("traffic", [], { ...span(sum), verdict: "BLOCK", agent: one.value }), name: "block" })), { label: "Agents by blocked requests" }) : empty("No request was blocked in this time."));
      fill(parts.rules, top.rules.length ? bars(top.rules.slice(0, 8).map((one) => ({ label: nameOf(one.value), value: one.requests, href: link("traffic", [], { ...span(sum), rule: one.value }) })), { label: "Rules by requests they matched", show: (value) => `${compact(value)} · ${percent(value / totals.requests)}` }) : empty("No rule matched in this time."));
      if (parts.flow.contains(document.activeElement)) return undefined; // somebody goes from bar to bar
      return verdicts(sum, { label: "Requests over time", height: 240, pick: (since, until) => context.go("traffic", [], { since, until }) });
    }),
    scores: part("scores", "posture:read", () => api.get("/api/posture", { since: "7d" }, signal), (found) => scores(found, link)),
  };
  rest(waiting.slice());

  /** Ask for what the list and the numbers need besides, when the first answers are there. */
  async function rest(first) {
    await Promise.all(first);
    if (signal.aborted) return;
    again.incidents = part("incidents", "alerts:read", async () => { const page = await api.page("/api/incidents", { limit: PAGE }, signal); context.count(page.items.length); return page; });
    again.seen = part("seen", "alerts:read", async () => {
      const now = await api.page("/api/incidents", { scope: "all", limit: PAGE, since: seen.since, until: seen.until }, signal);
      return { ...now, before: known.flow && await count(before(known.flow.sum)) };
    });
    again.budgets = part("budgets", "budgets:read", () => api.page("/api/budgets", {}, signal));
    again.fleet = part("fleet", "fleet:read", () => api.get("/api/fleet", {}, signal));
    part("proposed", "risk_acceptances:manage", async () => (await api.page("/api/risk-acceptances", {}, signal)).items.filter((one) => one.status === "proposed").length);
    part("providers", "providers:read", async () => (await api.page("/api/providers", {}, signal)).items);
    (await import("./onboarding.js")).onboarding(parts.start, context);
    const names = await import("../names.js");
    names.learn().then(() => { nameOf = names.nameOf; again.flow(); });
    await Promise.all(waiting);
    known.isAll = true;
    note();
  }

  let soon = null;
  context.on((name) => {
    if (name === "state") { note(); return; }
    clearTimeout(soon);
    soon = setTimeout(() => { again.flow(); if (name !== "traffic") { again.incidents?.(); again.seen?.(); } }, 700);
  });
  const slow = setInterval(() => document.hidden || Object.values(again).forEach((call) => call()), 60000);
  signal.addEventListener("abort", () => { clearInterval(slow); clearTimeout(soon); });
  return {};
}

/** The time of a summary as far as it has passed, and the same length of time before it. */
const span = ({ since, until }) => ({ since: iso(since), until: iso(Math.min(new Date(until), Date.now())) });
const length = (sum) => new Date(span(sum).until) - new Date(sum.since);
const before = (sum) => ({ since: iso(new Date(sum.since) - length(sum)), until: iso(new Date(sum.since) - 1) });

/** Five numbers: each with how it changed, and how it went. Both times are compared by the hour, since a step may have only begun. */
function numbers({ flow, incidents, seen }, link) {
  const one = (label, href, value, told, values) => h("div.stat", h("div.stat-label", label), h("a.stat-value", { href }, value), told.filter(Boolean).map((text) => h("div.stat-note", text)), values && spark(values));
  const { sum, before: earlier } = flow || {}, now = sum?.totals, old = earlier?.totals;
  const changed = (value, was) => (isNone(value) || !was ? "No earlier data" : `${value < was ? "−" : "+"}${percent(Math.abs(value / was - 1), 0)} from before`);
  const perHour = (name) => changed(now[name] / length(sum), old[name] / length(earlier));
  const all = (read) => sum.series.filter((each) => new Date(each.at) < Date.now()).map(read);
  const share = (of) => (of.requests ? of.blocks / of.requests : null), isShare = old?.requests && now.requests;
  const began = sum && seen && !seen.next && all((each) => seen.items.filter((incident) => Math.floor((new Date(incident.first_seen) - new Date(each.at)) / (sum.bucket_seconds * 1000)) === 0).length);
  const times = sum && span(sum);
  return h("div.numbers",
    sum && [one("Requests", link("traffic", [], times), compact(now.requests), [perHour("requests")], all((each) => each.requests)),
      one("Blocked", link("traffic", [], { ...times, verdict: "BLOCK" }), percent(share(now)), [isShare ? `${share(now) < share(old) ? "−" : "+"}${(Math.abs(share(now) - share(old)) * 100).toFixed(1)} points from before` : changed(null), `${compact(now.blocks)} blocked, ${compact(now.reviews)} for review`], all((each) => (each.requests ? each.blocks / each.requests : 0)))],
    incidents && one("Open incidents", link("incidents"), number(incidents.total), [seen && `${number(seen.total)} seen in this time${isNone(seen.before) ? "" : `, ${number(seen.before)} before`}`], began),
    sum && [one("Overhead, p95", link("traffic", [], { ...times, sort: "-latency" }), millis(now.overhead_p95_ms), [changed(now.overhead_p95_ms, old.overhead_p95_ms), `p50 ${millis(now.overhead_p50_ms)}`], all((each) => each.overhead_ms)),
      one("Spent", link("cost", [], times), microusd(now.cost_microusd), [perHour("cost_microusd"), now.cost_microusd > 0 && `${microusd(Math.round((now.cost_microusd / length(sum)) * 720 * HOUR_MS / 10000) * 10000)} in 30 days at this pace`], all((each) => each.cost_microusd))]);
}

function banner(node, known) {
  const check = known.scores?.trust_audit?.checks.find((one) => one.id === "shield-mode" || one.id === "shield-blocks");
  const observes = known.scores?.threat.some((one) => one.name === "bypass" && one.points > 0) || check?.status === "fail";
  if (!known.scores) return;
  fill(node, h(`div.banner${observes ? ".soso" : ""}`, icon(observes ? "REVIEW" : "shield"),
    observes ? h("span.grow", h("b", "Observing. "), "The shield records what it would block, but lets it pass.") : h("span.grow", h("b", "Protecting. "), "The shield stops blocked prompts and replies."),
    h("span.row-line", Object.entries(known.scores.services).map(([name, state]) => h("span.small", words(name), " ", status(state))))));
}

function scores(found, link) {
  const audit = found.trust_audit, why = found.threat.filter((one) => one.points >= 0.05).sort((one, other) => other.points - one.points).slice(0, 4);
  const isLifted = Math.round(found.threat.reduce((sum, one) => sum + one.points, 0)) < found.threat_score;
  return h("div.stack", score("posture", found.posture_score), audit && h("p", audit.failed || audit.warned ? h("a", { href: link("posture", ["checks"], { status: audit.failed ? "fail" : "warn" }) }, audit.failed ? `${audit.failed} of its checks fail` : `No check fails; ${audit.warned} warn`) : `All ${audit.passed} checks pass.`),
    score("threat", found.threat_score), why.length > 0 && h("ul.list.lines", why.map((one) => h("li", h("span.grow", THREAT[one.name] || words(one.name)), h("b", one.points.toFixed(one.points < 10 ? 1 : 0)), h("span.dim.small", `of ${one.limit}`))), isLifted && h("li.dim", `An active critical alert raises the score to ${found.threat_score}.`)));
}

/** What waits for somebody, the gravest first. */
function todo(known, { can, link, session, changePassword }) {
  const list = [], add = (kind, text, to, when) => list.push({ kind, text, to, when });
  const waiting = (known.incidents?.items || []).filter((one) => one.status === "open" && ["critical", "high"].includes(one.severity)).sort((one, other) => SEVERITIES.indexOf(one.severity) - SEVERITIES.indexOf(other.severity));
  for (const one of waiting.slice(0, MOST_INCIDENTS)) add(one.severity, one.agent ? `${one.agent}: ${one.title}` : one.title, link("incidents", [one.id]), one.first_seen);
  if (waiting.length > MOST_INCIDENTS) add("high", `${waiting.length - MOST_INCIDENTS}${known.incidents.next ? " or more" : ""} further unacknowledged incidents`, link("incidents"));
  if (session.isFirstPassword) add("high", "You still use the first password, which others may have seen", () => changePassword());
  for (const one of known.budgets?.items || []) if (["exceeded", "warning"].includes(one.status)) add(one.status === "exceeded" ? "high" : "medium", `Budget ${one.name || words(one.scope)}: ${percent(one.effective_limit ? one.spent / one.effective_limit : 1, 0)} spent`, link("cost"));
  for (const one of (known.scores?.trust_audit?.checks || []).filter((check) => check.status === "fail")) add(one.severity, `Check failed: ${one.title}`, link("posture", ["checks", one.id]));
  for (const one of (known.fleet?.instances || []).filter((each) => each.connection === "offline")) add("medium", `${one.name} is offline`, link("settings", ["fleet"]), one.last_seen);
  if (known.scores && !known.scores.trust_audit && can("posture:manage")) add("medium", "No trust audit has been run yet", link("posture"));
  if (known.proposed) add("medium", known.proposed === 1 ? "An exception waits for your approval" : `${known.proposed} exceptions wait for your approval`, link("shield", ["acceptances"]));
  const echoes = known.providers && can("providers:manage") && onlyEcho(known.providers);
  if (echoes) add("low", echoes, link("settings", ["providers"]));
  if (!list.length) return known.isAll ? empty("Nothing needs you.") : loading();
  return h("ul.list.lines", list.sort((one, other) => SEVERITIES.indexOf(one.kind) - SEVERITIES.indexOf(other.kind)).map(({ kind, text, to, when }) => h("li", icon(kind, `sev-${kind}`), h("span.sr", words(kind)), typeof to === "string" ? h("a.grow", { href: to }, text) : [h("span.grow", text), button("Change", to, { kind: "small" })], when && h("span.dim.small", ago(when)))));
}

/** Say why no model of a provider answers, where that is so. */
function onlyEcho(providers) {
  const used = providers.filter((one) => one.enabled);
  if (!providers.length) return "No provider yet: the built-in model echo answers";
  if (!used.length) return "Every provider is disabled: no chat can be answered";
  return used.every((one) => one.type === "echo") && "The providers in use only echo prompts: no real model answers";
}
