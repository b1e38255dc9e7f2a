// What a draft changes: its lines beside those of the version before, and the verdicts on the texts of the last week.

import { fill, h, number } from "../dom.js";
import { button, code, loading, stat, trouble, verdict, words } from "../ui.js";

const AROUND = 2; // lines shown around a change
const MOST_LINES = 1500;
const lines = (value) => (value === null ? [] : JSON.stringify(value, null, 2).split("\n"));

/** Return [sign, line] for each line of two values: "-" only before, "+" only after, " " in both. */
function steps(before, after) {
  if (before.length > MOST_LINES || after.length > MOST_LINES) return [...before.map((line) => ["-", line]), ...after.map((line) => ["+", line])];
  const longest = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1));
  for (let i = before.length - 1; i >= 0; i -= 1) for (let j = after.length - 1; j >= 0; j -= 1) longest[i][j] = before[i] === after[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
  const found = [];
  for (let i = 0, j = 0; i < before.length || j < after.length;) {
    if (i < before.length && j < after.length && before[i] === after[j]) { found.push([" ", before[i]]); i += 1; j += 1; } else if (j >= after.length || (i < before.length && longest[i + 1][j] >= longest[i][j + 1])) { found.push(["-", before[i]]); i += 1; } else { found.push(["+", after[j]]); j += 1; }
  }
  return found;
}

/** Show two values line by line, as far as they differ. before: null for nothing. */
export function diff(before, after) {
  const found = steps(lines(before), lines(after));
  const near = found.map((_, index) => found.slice(Math.max(0, index - AROUND), index + AROUND + 1).some(([sign]) => sign !== " "));
  if (!near.includes(true)) return h("p.dim", "Nothing changes.");
  return h("pre.json.diff", { tabindex: "0", role: "group", "aria-label": "Changed lines" }, found.map(([sign, line], index) => {
    if (!near[index]) return near[index - 1] || !index ? h("span.dim", "…\n") : null;
    return sign === " " ? `  ${line}\n` : h(sign === "+" ? "ins" : "del", `${sign} ${line}\n`);
  }));
}

const flips = (title, counts) => h("div", h("h3", title), Object.keys(counts).length ? h("ul.list", Object.entries(counts).map(([flip, count]) => h("li", change(...flip.split(">")), h("b", number(count))))) : h("p.dim", "No verdict changes."));
const change = (before, after) => h("span.row-line", verdict(before), h("span", { "aria-label": "becomes" }, "→"), verdict(after));

/** Show what a replay found. */
function replayed(found) {
  return h("div.stack",
    found.is_stopped && h("div.banner.soso", `Time ran out. Only ${number(found.texts + found.cases)} texts were scanned, the newest first.`),
    h("div.stats", stat("Attacks newly found", number(found.attacks_newly_found)), stat("Attacks newly missed", number(found.attacks_newly_missed)), stat("Benign newly flagged", number(found.benign_newly_flagged)), stat("Benign newly passed", number(found.benign_newly_passed))),
    found.texts ? flips(`Stored texts of the last 7 days: ${number(found.texts)}${found.masked ? `, ${number(found.masked)} of them masked` : ""}`, found.flips) : h("p.dim", "There are no stored texts of the last 7 days that you may read. A policy can store the texts of its keys."),
    flips(`Validation suite: ${number(found.cases)} cases`, found.suite_flips),
    found.examples.length > 0 && h("details.more", h("summary", `Examples (${found.examples.length})`), h("ul.list", found.examples.map((one) => h("li", h("span.grow", one.request_id ? h("a", { href: `#/traffic/${one.request_id}`, target: "_blank" }, one.request_id) : ["Case ", code(one.case)], h("span.dim", ` ${words(one.direction)}`)), change(one.before, one.after))))));
}

/** A button that replays a draft, and what that found. ask: sends it. */
export function replay(ask, label = "What would change") {
  const result = h("div", { role: "status" });
  return h("div.stack.tight", button(label, async () => {
    fill(result, loading("Scanning the texts of the last 7 days"));
    try { fill(result, replayed(await ask())); } catch (error) { fill(result, trouble(error)); }
  }, { sign: "refresh" }), result);
}

/** List versions, newest first, each with what it changed and a way back. revert: null if nobody may. */
export function history(versions, revert) {
  return h("ul.list", versions.map((one, index) => h("li", h("span.grow", h("b", `Version ${one.version}`), " ", one.when, h("span.dim", ` by ${one.who}`), one.reason && h("div.dim.small", one.reason)),
    index > 0 && one.value && revert && button("Revert", () => revert(one), { kind: "small" }),
    (one.value || versions[index + 1]?.value) && h("details.more", h("summary", index + 1 < versions.length ? "Changes" : "Content"), diff(versions[index + 1]?.value ?? null, one.value)))));
}
