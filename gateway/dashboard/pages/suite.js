// The validation suite: how well the rules find attacks that they were not made for, and how that went before.

import { api } from "../api.js";
import { series } from "../charts.js";
import { fill, h, number, percent, time } from "../dom.js";
import { formDialog } from "../form.js";
import { button, code, empty, failed, headed, load, panel, stat, verdict, words } from "../ui.js";
import { cut, table } from "../table.js";
import { CATEGORIES } from "./policies.js";

export async function draw({ main, tools, can, signal }) {
  const body = h("div.stack"), progress = h("div");
  const again = load(body, () => api.get("/api/shield/tests", {}, signal), (state) => shown(state));
  const run = () => formDialog("Run the validation suite", [
    { name: "category", label: "Category", type: "select", options: [["", "All"], ...CATEGORIES.map((name) => [name, words(name)])] },
    { name: "include_known_gaps", label: "Also count attacks that the rules are known to miss", type: "switch" },
  ], async (values) => { start({ ...values, category: values.category || undefined }); }, { label: "Run" });

  async function start(values) {
    fill(progress, h("div.banner.info", h("span", "Starting the suite…")));
    const poll = setInterval(async () => {
      try {
        const { running } = await api.get("/api/shield/tests", {}, signal);
        if (running) fill(progress, h("div.banner.info", { role: "status" }, h("span", `${number(running.done)} of ${number(running.total)} texts scanned`), h("progress", { max: running.total, value: running.done, "aria-label": "Progress of the suite" })));
      } catch { /* the run itself tells */ }
    }, 600);
    try { await api.post("/api/shield/tests", values, signal); } catch (error) { failed(error); } finally { clearInterval(poll); fill(progress); again(); }
  }
  fill(tools, can("shield:manage") && button("Run the suite", run, { kind: "primary" }));
  fill(main, progress, body);
  return {};
}

const delta = (value, good) => (value ? h(`span.${value > 0 === good ? "good" : "bad"}`, `${value > 0 ? "+" : ""}${(value * 100).toFixed(1)} points since the last run`) : "same as the last run");

function shown({ last, history }) {
  if (!last) return empty("The suite has not run yet. None of its texts is an example of a rule, and it raises no alerts.");
  const report = last.report, change = last.change;
  return [
    panel(null, h("div.stats", stat("Detection rate", percent(report.detection_rate), change ? delta(change.detection_rate, true) : `${report.found} of ${report.attacks} attacks`), stat("False positives", percent(report.false_positive_rate), change ? delta(change.false_positive_rate, false) : `${report.flagged} of ${report.controls} controls`),
      stat("Failed cases", number(report.failures.length), `of ${number(report.cases)}`), stat("One scan, p95", `${(report.p95_us / 1000).toFixed(2)} ms`, `p50 ${(report.p50_us / 1000).toFixed(2)} ms`), stat("Run", time(last.ran_at), `by ${last.ran_by}`)),
    change?.rules_changed && h("p.dim", "The rule file has changed since the last run."),
    change?.newly_failing.length ? h("p.bad", `Newly failing: ${change.newly_failing.join(", ")}`) : null,
    change?.newly_holding.length ? h("p.good", `Newly passing: ${change.newly_holding.join(", ")}`) : null),
    history.length > 1 && panel("Detection and false positives, by run", series([...history].reverse().map((one) => ({ at: one.ran_at, found: (one.detection_rate || 0) * 100, wrong: (one.false_positive_rate || 0) * 100 })), [{ key: "found", label: "Detection rate", name: "two" }, { key: "wrong", label: "False positives", name: "block" }], { label: "Rates by run", lines: true, show: (value) => `${Math.round(value * 10) / 10} %` })),
    panel("Failed cases", table({ label: "Failed cases", rows: report.failures, none: "Every case has the expected verdict.", columns: [
      { label: "Case", cell: (row) => code(row.case), sort: (row) => row.case }, { label: "Category", low: 1, cell: (row) => words(row.category), sort: (row) => row.category }, { label: "Language", low: 2, cell: (row) => language(row.language) }, { label: "Expected", cell: (row) => words(row.expected) }, { label: "Verdict", cell: (row) => verdict(row.verdict) }, { label: "Score", align: "end", cell: (row) => row.score }, { label: "Rules", wide: true, low: 2, cell: (row) => cut(row.rules.join(", ")) }] }).node),
    h("div.grid2", groups("By category", report.categories, words), groups("By language", report.languages, language)),
    headed("Rules that no case matched", h("span.dim", number(report.unexercised.length)), h("details.more", h("summary", "Show them"), h("p", report.unexercised.map((id) => [h("a", { href: `#/shield/rules/${id}` }, id), " "])))),
  ];
}

const names = new Intl.DisplayNames("en", { type: "language" });
const language = (code) => { try { return names.of(code); } catch { return code; } };
const groups = (title, list, told) => panel(title, table({ label: title, rows: list, size: 20, columns: [
  { label: "Name", cell: (row) => told(row.name), sort: (row) => told(row.name) }, { label: "Attacks", align: "end", cell: (row) => row.attacks, sort: (row) => row.attacks },
  { label: "Found", align: "end", cell: (row) => (row.attacks ? percent(row.found / row.attacks, 0) : "–"), sort: (row) => (row.attacks ? row.found / row.attacks : 2) },
  { label: "Controls flagged", align: "end", cell: (row) => (row.controls ? `${row.flagged} of ${row.controls}` : "–"), sort: (row) => row.flagged }] }).node);
