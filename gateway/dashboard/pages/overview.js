// The first page: how things stand, what happens, and at most five things to do next.

import { api, feed } from "../api.js";
import { bars, dial, meter, series } from "../charts.js";
import { ago, compact, fill, h, icon, microusd, millis, number, percent, time } from "../dom.js";
import { RANGES, timeFilter, zoneFilter } from "../filters.js";
import { button, empty, headed, load, panel, severity, SEVERITIES, stat, status, words } from "../ui.js";

const KINDS = [{ key: "passed", label: "Passed", name: "allow" }, { key: "reviews", label: "For review", name: "review" }, { key: "blocks", label: "Blocked", name: "block" }];
const THREAT = { blocks: "Blocked requests", active_alerts: "Active alerts", auth_failures: "Failed sign-ins and keys", bypass: "Shield only observes", budget_breaches: "Budgets exceeded", offline_instances: "Offline instances" };

export async function draw(context, here) {
  const { main, tools, can, link, signal } = context;
  const seen = { since: "24h", ...here.query, freshAt: null };
  const parts = Object.fromEntries(["banner", "start", "scores", "todo", "flow", "stats", "rules", "incidents", "budgets", "fleet"].map((name) => [name, h("div", { data: { part: name } })]));
  const fresh = h("p.dim.small");
  const range = timeFilter({ options: RANGES }, seen, (given) => { Object.assign(seen, given); context.filter(given); again.flow(); });
  fill(tools, can("traffic:read") && range, zoneFilter());
  fill(main, parts.banner, parts.start, h("div.main-side", h("div.stack", can("posture:read") && panel("Status", parts.scores), can("traffic:read") && headed("Requests", parts.stats, parts.flow)),
    h("div.stack", panel("Next", parts.todo), can("alerts:read") && headed("Active incidents", h("a", { href: link("incidents") }, "All incidents"), parts.incidents))),
  h("div.grid3", can("traffic:read") && panel("Top rules", parts.rules), can("budgets:read") && headed("Budgets", h("a", { href: link("cost") }, "Cost"), parts.budgets), can("fleet:read") && headed("Fleet", h("a", { href: link("fleet") }, "Fleet"), parts.fleet)), fresh);

  const known = {}, waiting = [], names = new Map();
  if (can("shield:read")) api.page("/api/shield/rules", {}, signal).then(({ items }) => { for (const one of items) names.set(one.id, one.name); again.flow(); }, () => {});
  const note = () => {
    seen.freshAt = new Date().toISOString();
    fill(fresh, "Read ", time(seen.freshAt), feed.state === "live" ? "; updates live." : feed.state === "polling" ? "; updates every ten seconds." : ".");
    fill(parts.todo, todo(known, context));
    banner(parts.banner, known);
  };
  const part = (name, permission, ask, show) => {
    if (!can(permission)) return () => {};
    let first;
    waiting.push(new Promise((resolve) => { first = resolve; }));
    return load(parts[name], async () => { try { known[name] = await ask(); return known[name]; } finally { first(); } }, (value) => { const drawn = show(value); note(); return drawn; });
  };

  const again = {
    flow: part("flow", "traffic:read", () => api.get("/api/traffic/summary", { since: seen.since, until: seen.until }, signal), (sum) => {
      fill(parts.stats, null);
      fill(parts.rules, sum.top.rules?.length ? bars(sum.top.rules.slice(0, 8).map((one) => ({ label: names.get(one.value) || one.value, value: one.requests, href: link("shield", ["rules", one.value]), name: "block" })), { label: "Rules by requests they matched" }) : empty("No rule matched in this period."));
      return [h("div.stats", stat("Requests", compact(sum.totals.requests)), stat("Blocked", compact(sum.totals.blocks), percent(sum.totals.requests ? sum.totals.blocks / sum.totals.requests : null)), stat("For review", compact(sum.totals.reviews), percent(sum.totals.requests ? sum.totals.reviews / sum.totals.requests : null)),
        stat("Overhead, p95", millis(sum.totals.overhead_p95_ms), `p50 ${millis(sum.totals.overhead_p50_ms)}`), stat("Spent", microusd(sum.totals.cost_microusd))),
      series(sum.series.map((one) => ({ ...one, passed: one.requests - one.blocks - one.reviews })), KINDS, { label: "Requests over time", height: 196 })];
    }),
    scores: part("scores", "posture:read", () => api.get("/api/posture", { since: "7d" }, signal), (found) => scores(found, link)),
  };
  rest(waiting.slice());

  /** Ask for what stands further down when the first answers are there. */
  async function rest(first) {
    await Promise.all(first);
    if (signal.aborted) return;
    again.incidents = part("incidents", "alerts:read", () => api.page("/api/incidents", { limit: 100 }, signal), (page) => { context.count(page.items.length); return incidents(page, link); });
    again.budgets = part("budgets", "budgets:read", () => api.page("/api/budgets", {}, signal), ({ items }) => budgets(items, context));
    again.fleet = part("fleet", "fleet:read", () => api.get("/api/fleet", {}, signal), (found) => fleet(found.instances || []));
    (await import("./onboarding.js")).onboarding(parts.start, context);
    if (can("risk_acceptances:manage")) api.page("/api/risk-acceptances", {}, signal).then(({ items }) => { known.proposed = items.filter((one) => one.status === "proposed"); note(); }, () => {});
    if (can("providers:read")) api.page("/api/providers", {}, signal).then(({ items }) => { known.providers = items; note(); }, () => {});
  }

  let soon = null;
  context.on((name) => {
    if (name === "state") { note(); return; }
    clearTimeout(soon);
    soon = setTimeout(() => { again.flow(); if (name !== "traffic") again.incidents?.(); }, 700);
  });
  const slow = setInterval(() => document.hidden || Object.values(again).forEach((call) => call()), 60000);
  signal.addEventListener("abort", () => { clearInterval(slow); clearTimeout(soon); });
  return {};
}

function banner(node, known) {
  const check = known.scores?.trust_audit?.checks.find((one) => one.id === "shield-mode" || one.id === "shield-blocks");
  const observes = known.scores?.threat.some((one) => one.name === "bypass" && one.points > 0) || check?.status === "fail";
  if (!known.scores) return;
  fill(node, h(`div.banner${observes ? ".soso" : ""}`, icon(observes ? "REVIEW" : "ALLOW", observes ? "soso" : "good"),
    observes ? h("span", h("b", "Observing. "), "The shield records what it would block, but lets it pass.") : h("span", h("b", "Protecting. "), "The shield stops blocked prompts and replies."),
    h("span.row-line", Object.entries(known.scores.services).map(([name, state]) => h("span.small", words(name), " ", status(state))))));
}

function scores(found, link) {
  const audit = found.trust_audit, bad = (audit?.checks || []).filter((one) => one.status === "fail").slice(0, 3);
  const posture = found.posture_score, threat = found.threat_score;
  const why = found.threat.filter((one) => one.points >= 0.05).sort((one, other) => other.points - one.points).slice(0, 4);
  const isLifted = Math.round(found.threat.reduce((sum, one) => sum + one.points, 0)) < threat;
  return h("div.dials",
    h("div.stack.tight", h("h3", "Posture"), dial(posture, { label: "Posture score", word: posture === null ? "no trust audit yet" : posture >= 80 ? "good" : posture >= 50 ? "fair" : "poor", kind: posture === null ? "none" : posture >= 80 ? "good" : posture >= 50 ? "soso" : "bad" }),
      audit ? h("ul.list.lines", bad.map((one) => h("li", icon(one.severity, `sev-${one.severity}`), h("a.grow", { href: link("posture", ["checks", one.id]) }, `Check failed: ${one.title}`))), !bad.length && h("li.dim", holds(audit, link))) : h("p.dim.small", "How securely this gateway is set up, by its trust audit. Higher is better.")),
    h("div.stack.tight", h("h3", "Threat"), dial(threat, { label: "Threat score", word: threat > 75 ? "severe" : threat > 50 ? "high" : threat > 25 ? "raised" : "low", kind: threat > 50 ? "bad" : threat > 25 ? "soso" : "good" }),
      why.length ? h("ul.list.lines", why.map((one) => h("li", h("span.grow", THREAT[one.name] || words(one.name)), h("b", one.points.toFixed(one.points < 10 ? 1 : 0)), h("span.dim.small", `of ${one.limit}`))), isLifted && h("li.dim", `An active critical alert raises the score to ${threat}.`)) : h("p.dim.small", "Nothing has happened in the last 24 hours. Lower is better.")));
}

const holds = (audit, link) => (audit.warned ? h("a", { href: link("posture", ["checks"], { status: "warn" }) }, `No check fails; ${audit.warned} warn`) : `All ${audit.passed} checks pass.`);

function incidents({ items, next }, link) {
  if (!items.length) return empty("No active incidents.");
  const counts = SEVERITIES.map((name) => [name, items.filter((one) => one.severity === name)]).filter(([, list]) => list.length);
  return [h("div.row-line", counts.map(([name, list]) => h("a", { href: link("incidents", [], { severity: name }) }, severity(name), " ", h("b", number(list.length), next && "+")))),
    h("ul.list.lines", [...items].sort((one, other) => SEVERITIES.indexOf(one.severity) - SEVERITIES.indexOf(other.severity)).slice(0, 5).map((one) => h("li", icon(one.severity, `sev-${one.severity}`), h("a.grow.cut", { href: link("incidents", [one.id]), title: one.title }, one.agent ? `${one.agent}: ${one.title}` : one.title), h("span.dim.small", ago(one.first_seen)))))];
}

function budgets(items, { link, can }) {
  if (!items.length) return empty("No budgets. Nothing limits spending.", can("budgets:manage") && h("a.btn", { href: link("cost") }, "Create one"));
  return h("ul.list", [...items].sort((one, other) => other.spent / other.effective_limit - one.spent / one.effective_limit).slice(0, 5).map((one) => {
    const share = one.effective_limit ? one.spent / one.effective_limit : 1;
    return h("li", h("span.grow.cut", one.name || `${words(one.scope)} ${one.scope_value || ""}`), h("b", percent(share, 0)), meter(share, { label: `${one.name || one.scope}: spent`, kind: one.status === "exceeded" ? "bad" : one.status === "warning" ? "soso" : "good", mark: one.soft_pct / 100 }));
  }));
}

const fleet = (items) => (items.length ? h("ul.strip", items.slice(0, 12).map((one) => h("li", status(one.connection === "online" ? one.status : one.connection), h("span.cut", one.name)))) : empty("No instance has sent a heartbeat."));

/** At most five things to do, the gravest first. */
function todo(known, { can, link, session, changePassword }) {
  const list = [];
  const active = known.incidents?.items || [];
  const most = known.incidents?.next ? " or more" : "";
  const grave = active.filter((one) => one.severity === "critical" && one.status === "open");
  if (grave.length) list.push(["critical", grave.length === 1 ? grave[0].title : `${grave.length}${most} unacknowledged critical incidents`, "Open", link("incidents", grave.length === 1 ? [grave[0].id] : [], grave.length === 1 ? {} : { severity: "critical" })]);
  if (session.isFirstPassword) list.push(["high", "You still use the first password, which others may have seen", "Change", () => changePassword()]);
  const over = (known.budgets?.items || []).filter((one) => one.status === "exceeded");
  if (over.length) list.push(["high", `${over.length === 1 ? over[0].name || "A budget" : `${over.length} budgets`} exceeded`, "Open", link("cost")]);
  for (const check of (known.scores?.trust_audit?.checks || []).filter((one) => one.status === "fail" && ["critical", "high"].includes(one.severity)).slice(0, 2)) list.push([check.severity, `Check failed: ${check.title}`, "Fix", link("posture", ["checks", check.id])]);
  const lost = (known.fleet?.instances || []).filter((one) => one.connection === "offline");
  if (lost.length) list.push(["medium", `${lost.length === 1 ? lost[0].name : `${lost.length} instances`} offline`, "Open", link("fleet")]);
  if (known.scores && !known.scores.trust_audit && can("posture:manage")) list.push(["medium", "No trust audit has been run yet", "Run", link("posture")]);
  const proposed = known.proposed?.length || 0;
  if (proposed) list.push(["medium", proposed === 1 ? "An exception waits for your approval" : `${proposed} exceptions wait for your approval`, "Review", link("shield", ["acceptances"])]);
  const open = active.filter((one) => one.severity === "high" && one.status === "open");
  if (open.length) list.push(["medium", `${open.length}${most} unacknowledged high incident${open.length > 1 ? "s" : ""}`, "Open", link("incidents", [], { severity: "high" })]);
  const echoes = known.providers && can("providers:manage") && onlyEcho(known.providers);
  if (echoes) list.push(["low", echoes, "Providers", link("settings", ["providers"])]);
  if (!list.length) return empty("Nothing needs your attention.");
  return h("ul.list.todo", list.slice(0, 5).map(([kind, text, label, to]) => h("li", icon(kind, `sev-${kind}`), h("span.grow", text), typeof to === "string" ? h("a.btn.small", { href: to }, label) : button(label, to, { kind: "small" }))));
}

/** Say why no model of a provider answers, where that is so. */
function onlyEcho(providers) {
  const used = providers.filter((one) => one.enabled);
  if (!providers.length) return "No provider yet: the built-in model echo answers";
  if (!used.length) return "Every provider is disabled: no chat can be answered";
  return used.every((one) => one.type === "echo") && "The providers in use only echo prompts: no real model answers";
}
