// The validation suite: how well the rules find attacks that they were not made for, and how that went before.

import { api } from "../api.js";
import { series } from "../charts.js";
import { fill, h, millis, number, percent, time } from "../dom.js";
import { formDialog } from "../form.js";
import { bold, button, code, empty, failed, headed, load, panel, stat, verdict, words } from "../ui.js";
import { cut, table } from "../table.js";
import { CATEGORIES } from "./policies.js";

export async function draw({ main, tools, can, signal }) {
  const body = h("div.stack"), progress = h("div");
  const again = load(body, () => api.get("/api/shield/tests", {}, signal), (state) => shown(state));
  const run = () => formDialog("Run the validation suite", [
    { name: "category", options: [["", "All"], ...CATEGORIES.map((name) => [name, words(name)])] },
    { name: "include_known_gaps", label: "Also count attacks that the rules are known to miss", type: "switch" },
    { name: "detectors", label: "With detectors: ask each enabled one about every text", type: "switch" },
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
    last.detectors.length > 0 && panel("With detectors", compared(last.detectors)),
    history.length > 1 && panel("Detection and false positives, by run", series([...history].reverse().map((one) => ({ at: one.ran_at, found: (one.detection_rate || 0) * 100, wrong: (one.false_positive_rate || 0) * 100 })), [{ key: "found", label: "Detection rate", name: "two" }, { key: "wrong", label: "False positives", name: "block" }], { label: "Rates by run", lines: true, show: (value) => `${Math.round(value * 10) / 10} %` })),
    panel("Failed cases", table({ label: "Failed cases", rows: report.failures, none: "Every case has the expected verdict.", columns: [
      { of: "case", as: code, sort: true }, { of: "category", as: words, low: 1, sort: true }, { of: "language", as: language, low: 2 }, { of: "expected", as: words }, { of: "verdict", as: verdict }, { of: "score", align: "end" }, { label: "Rules", wide: true, low: 2, cell: (row) => cut(row.rules.join(", ")) }] }).node),
    h("div.grid2", groups("By category", report.categories, words), groups("By language", report.languages, language)),
    headed("Rules that no case matched", h("span.dim", number(report.unexercised.length)), h("details.more", h("summary", "Show them"), h("p", report.unexercised.map((id) => [h("a", { href: `#/shield/rules/${id}` }, id), " "])))),
  ];
}

/** What each detector finds, and flags of the controls: alone, the shield without it, and both. */
const compared = (list) => {
  const share = (label, part, whole, low) => ({ label, align: "end", low, cell: (row) => (row[whole] ? h("span", { title: `${row[part]} of ${row[whole]}` }, percent(row[part] / row[whole])) : "–") });
  const ms = (us) => millis(us / 1000);
  return table({ label: "With detectors", rows: list, columns: [{ label: "Detector", of: "name", as: bold },
    share("Found alone", "found_alone", "attacks", 1), share("Shield finds", "found_shield", "attacks", 1), share("Both find", "found", "attacks"),
    share("Flagged alone", "flagged_alone", "controls", 2), share("Shield flags", "flagged_shield", "controls", 2), share("Both flag", "flagged", "controls"),
    { of: "decided", as: number, low: 1 }, { of: "errors", as: number, low: 1 }, { label: "p50", of: "p50_us", as: ms, align: "end", low: 3 }, { label: "p95", of: "p95_us", as: ms, align: "end", low: 2 }] }).node;
};

const names = new Intl.DisplayNames("en", { type: "language" });
const language = (code) => { try { return names.of(code); } catch { return code; } };
const groups = (title, list, told) => panel(title, table({ label: title, rows: list, size: 20, columns: [
  { label: "Name", cell: (row) => told(row.name), sort: (row) => told(row.name) }, { of: "attacks", align: "end", sort: true },
  { label: "Found", align: "end", cell: (row) => (row.attacks ? percent(row.found / row.attacks, 0) : "–"), sort: (row) => (row.attacks ? row.found / row.attacks : 2) },
  { label: "Controls flagged", align: "end", cell: (row) => (row.controls ? `${row.flagged} of ${row.controls}` : "–"), sort: (row) => row.flagged }] }).node);
