// The checks of the trust audit by category, each with what was seen, why it matters and the exact fix.

import { api } from "../api.js";
import { score, series } from "../charts.js";
import { fill, h, icon, number, time } from "../dom.js";
import { filters } from "../filters.js";
import { button, copy, empty, facts, load, panel, severity, SEVERITIES, snippet, stat, status, tag, toast, words } from "../ui.js";
import { table } from "../table.js";
import { detail } from "./detail.js";

const RANK = ["fail", "warn", "pass", "not_applicable"];

export async function draw(context, here) {
  const { main, tools, can, signal } = context;
  let values = here.query, audit = null;
  const top = h("div"), checks = h("div.stack"), bar = h("div");
  const run = button("Run the trust audit", async () => { await api.post("/api/trust-audits"); toast("The trust audit is done."); again(); }, { kind: "primary" });
  fill(tools, button("Print", () => window.print(), { sign: "print" }), can("posture:manage") && run);
  const list = () => fill(checks, audit ? groups(audit.checks.filter((one) => (!values.status || one.status === values.status) && (!values.severity || one.severity === values.severity) && (!values.category || one.category === values.category)), context) : empty("No trust audit has run yet. It checks settings, keys, agents, files and the audit chain, and changes nothing."));
  const show = detail(context, ["posture", "checks"], (id) => one(id, () => audit));
  const again = load(top, () => api.get("/api/posture", { since: values.since || "30d" }, signal), (found) => {
    audit = found.trust_audit;
    if (audit) fill(bar, filters([
      { name: "status", label: "Result", options: [["", "Any"], ["fail", "Fail"], ["warn", "Warn"], ["pass", "Pass"], ["not_applicable", "Does not apply"]] },
      { name: "severity", options: ["", ...SEVERITIES] },
      { name: "category", options: ["", ...new Set(audit.checks.map((each) => each.category))] },
    ], values, (change) => { values = context.filter(change); list(); }));
    list();
    show(context.place().rest.length > 1 ? { rest: context.place().rest.slice(1) } : { rest: here.rest });
    return head(found);
  });
  fill(main, top, bar, checks);
  return { moved: (to) => { show(to); } };
}

function head(found) {
  const { posture_score, threat_score, trust_audit: audit } = found;
  const points = [...found.history, { occurred_at: new Date().toISOString(), posture_score, threat_score }].map((one) => ({ at: one.occurred_at, posture: one.posture_score, threat: one.threat_score }));
  return h("div.grid2",
    panel("Scores", h("div.stack", score("posture", posture_score), score("threat", threat_score),
      audit && [h("div.stats", stat("Fail", number(audit.failed)), stat("Warn", number(audit.warned)), stat("Pass", number(audit.passed))), h("p.dim.small", "Run ", time(audit.occurred_at), ` by ${audit.started_by}. ${audit.skipped} checks do not apply. A failed critical check limits the score to 49.`)])),
    panel("Trend", points.length > 1 ? series(points, [{ key: "posture", label: "Posture", name: "two" }, { key: "threat", label: "Threat", name: "block" }], { label: "Posture and threat score", lines: true, full: 100, height: 150 }) : empty("The trend appears after the second measurement.")));
}

/** One list: what fails, what warns, and folded away what passes and what does not apply; the gravest first. */
function groups(list, { link, place }) {
  if (!list.length) return empty("No check matches. Clear some filters.");
  const sorted = [...list].sort((one, other) => RANK.indexOf(one.status) - RANK.indexOf(other.status) || SEVERITIES.indexOf(one.severity) - SEVERITIES.indexOf(other.severity));
  const rows = (...states) => sorted.filter((one) => states.includes(one.status)), found = rows("fail", "warn");
  const of = (label, some, isFound) => table({ label, size: 100, href: (row) => link("posture", ["checks", row.id], place().query), rows: some, columns: [
    { label: "Check", wide: true, cell: (row) => h("span", row.title, isFound && [h("span.dim.small", row.evidence), h("span.small", h("b", "Fix. "), row.fix)]) },
    { of: "category", as: words, low: 1 },
    isFound && { of: "severity", as: severity, low: 1 },
    { label: "Result", of: "status", as: isFound ? status : plain },
  ].filter(Boolean), tools: isFound && ((row) => settings(row).length > 0 && button("Copy fix", () => copy(settings(row).join("\n")), { sign: "copy", title: settings(row).join(" ") })) }).node;
  const folded = [["pass", "passed"], ["not_applicable", "that do not apply"]].map(([state, label]) => [rows(state), label]).filter(([some]) => some.length);
  return h("section.panel", found.length > 0 && of("Failed checks and warnings", found, true), folded.map(([some, label]) => h("details.more", { open: !found.length && folded.length === 1 }, h("summary", `${number(some.length)} checks ${label}`), of(`Checks ${label}`, some))));
}

const plain = (state) => h("span.dim", words(state));
/** The lines of a settings file that fix a check, where the fix names them. */
const settings = (check) => check.fix.match(/\b[A-Z][A-Z0-9_]{3,}=[^\s,;]*[^\s,;.]/g) || [];

function one(id, audit) {
  const check = audit()?.checks.find((each) => each.id === id);
  if (!check) return { title: "Check", body: empty("The newest trust audit has no such check.") };
  return { title: "Check", body: h("div.stack", h("div.row-line", status(check.status), severity(check.severity), tag(words(check.category))), h("h2", check.title),
    facts(["Evidence", check.evidence], ["Why it matters", check.why]), ["fail", "warn"].includes(check.status) && [h("div.banner.info", icon("check"), h("span", h("b", "Fix. "), check.fix)), settings(check).map((line) => snippet(line))],
    check.refs.length ? h("div", h("h3", "See"), h("div.tags", check.refs.map((each) => tag(each)))) : null) };
}
