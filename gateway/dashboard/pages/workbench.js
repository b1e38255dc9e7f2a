// The workbench: a rule of one's own, as a form or as JSON, beside texts on which every change is tried at once.

import { api, at } from "../api.js";
import { fill, h } from "../dom.js";
import { form } from "../form.js";
import { keep } from "../records.js";
import { button, dialog, SEVERITIES, tabs, toast, verdict, words } from "../ui.js";
import { diff, replay } from "./compare.js";
import { marked } from "./playground.js";
import { CATEGORIES } from "./policies.js";

const WAIT_MS = 400;
const MOST_TEXTS = 50;
const NEW = { id: "local:", name: "", category: "injection", severity: "high", confidence: 0.9, description: "", direction: ["inbound"], literals: [], match: [], pass: [] };
const GROUPS = [["match", "Must match", true], ["pass", "Must not match", false], ["other", "Other texts", null]];
const split = (text) => text.split("\n").filter((line) => line.trim());
/** The fields that must hold something, filled where they are empty, so that an unfinished draft can be tried. */
const filled = (draft) => ({ ...draft, id: /^local:[a-z0-9-]+$/.test(draft.id) ? draft.id : "local:draft", name: draft.name || "Draft", description: draft.description || "Draft", match: ["-"], pass: ["-"] });

/** Open the workbench. stored: the newest version of a rule to edit, null for a new one. done: called with what was saved. */
export function workbench(stored, done) {
  let draft = structuredClone(stored ? stored.rule : NEW), view = "form", reason = "", shown = null, soon = null, running = new AbortController();
  const texts = Object.fromEntries(GROUPS.map(([name]) => [name, (draft[name] || []).map((text) => ({ text }))]));
  const left = h("div.stack"), right = h("div.stack"), changes = h("div"), summary = h("p", { role: "status" });
  const complete = () => ({ ...draft, ...Object.fromEntries(["match", "pass"].map((name) => [name, texts[name].map((one) => one.text).filter((text) => text.trim())])) });

  function changed() {
    if (stored) fill(changes, h("h3", `Changes to version ${stored.version}`), diff(stored.rule, complete()));
    clearTimeout(soon);
    soon = setTimeout(run, WAIT_MS);
  }

  async function run() {
    running.abort();
    running = new AbortController();
    const tried = GROUPS.flatMap(([name, , wanted]) => texts[name].filter((one) => one.text).map((one) => ({ one, wanted }))).slice(0, MOST_TEXTS);
    const say = (text) => { for (const { one } of tried) fill(one.state); fill(summary, text); };
    if (!draft.pattern && !draft.patterns && !draft.literals?.length) { say("Enter literals or a pattern to run the texts."); return; }
    try {
      const answer = await api.post("/api/shield/rules/try", { rule: filled(draft), texts: tried.map(({ one }) => one.text) }, running.signal);
      say("");
      answer.texts.forEach((found, index) => show(tried[index], found));
      const wrong = tried.filter(({ wanted }, index) => wanted !== null && wanted !== answer.texts[index].matches).length;
      fill(summary, h(`span.state.${wrong ? "bad" : "good"}`, h("span.dot", { "aria-hidden": "true" }), !tried.length ? "The rule is valid. Add texts to try it." : wrong ? `${wrong} of ${tried.length} texts give the wrong result.` : "All texts give the right result."));
      shown?.say(null);
    } catch (error) { if (error.name !== "AbortError") { say(h("span.field-error", error.message)); shown?.say(error); } }
  }

  function show({ one, wanted }, found) {
    const word = found.matches ? "Matches" : "Does not match";
    fill(one.state, h(`span.state.${wanted === null ? "none" : wanted === found.matches ? "good" : "bad"}`, h("span.dot", { "aria-hidden": "true" }), word), found.before !== found.verdict && [verdict(found.before), "→"], verdict(found.verdict), h("span.dim", `Score ${found.score}`));
    if (found.matches) one.state.append(marked(one.text, found.spans.map(([start, end]) => ({ rule: "draft", name: draft.name || "Draft", severity: draft.severity, view: "draft", start, end }))));
  }

  function group([name, title]) {
    const box = h("div.stack.tight"), list = texts[name];
    const item = (one, index) => {
      const area = h("textarea", { rows: 2, value: one.text, "aria-label": `${title}, text ${index + 1}`, spellcheck: "false", oninput: () => { one.text = area.value; changed(); } });
      one.state ??= h("div.row-line");
      return h("div.stack.tight.example", area, h("div.row-line", one.state, button("Remove", () => { list.splice(list.indexOf(one), 1); draw(); changed(); }, { kind: "small.quiet", "aria-label": `Remove text ${index + 1}: ${title}` })));
    };
    const draw = () => fill(box, h("h3", title), list.map(item), h("div", button("Add text", () => { list.push({ text: "" }); draw(); box.querySelectorAll("textarea")[list.length - 1].focus(); }, { kind: "small", sign: "plus", "aria-label": `Add text: ${title}` })));
    draw();
    return box;
  }

  const why = { name: "reason", required: true, hint: "Appears in the audit log and the history.", max_chars: 500 };
  async function save() {
    const body = { rule: complete(), reason };
    try { return await keep("shield/rules", stored, body); } catch (error) { error.param = error.param?.replace(/^rule\./, ""); throw error; }
  }
  const asked = { label: stored ? "Save version" : "Save rule", cancel: () => box.close(), done: (made) => { box.close(); toast("Rule saved. Every worker uses it within seconds."); done(made); } };

  /** The draft as a form; fields that it does not show stay as they are. */
  function asForm() {
    const node = form([
      !stored && { name: "id", value: draft.id, required: true, hint: "local: and lower-case words joined by hyphens, such as local:code-names." },
      { name: "name", value: draft.name, required: true },
      { name: "category", value: draft.category, options: CATEGORIES.map((name) => [name, words(name)]) },
      { name: "severity", value: draft.severity, options: SEVERITIES, hint: "Critical blocks by itself, high asks for a review." },
      { name: "direction", value: draft.direction?.length > 1 ? "both" : draft.direction?.[0], options: [["inbound", "Inbound: on its way to a model"], ["outbound", "Outbound: from a model"], ["both", "Both"]] },
      { name: "confidence", label: "Confidence, 0 to 1", type: "number", min: 0, max: 1, step: 0.05, value: draft.confidence, required: true },
      { name: "literals", label: "Literals, one per line", type: "area", rows: 3, value: (draft.literals || []).join("\n"), hint: "Words in lower case. Without a pattern, each of them is a match." },
      { name: "pattern", type: "area", rows: 3, value: draft.pattern, hint: "A regular expression on lower-case text, without * and +: use {0,20} instead." },
      { name: "description", type: "area", rows: 2, value: draft.description, required: true },
      { ...why, value: reason },
    ], save, asked);
    node.addEventListener("input", () => {
      const { direction, literals, pattern, reason: told, ...values } = node.values();
      reason = told || "";
      Object.assign(draft, values, { direction: direction === "both" ? ["inbound", "outbound"] : [direction], literals: split(literals), pattern: pattern.trim() || undefined });
      changed();
    });
    shown = { say: (error) => ["pattern", "literals"].forEach((name) => node.field(name).say(error?.param?.startsWith(`rule.${name}`) ? error.message : "")) };
    return node;
  }

  /** The draft as JSON. What does not parse is not taken over. */
  function asJson() {
    const node = form([{ name: "json", label: "Rule as JSON", type: "area", rows: 26, value: JSON.stringify(complete(), null, 2), required: true, hint: "The fields of a rule file." }, { ...why, value: reason }], async (values) => { take(values.json); return save(); }, asked);
    const take = (text) => {
      let read;
      try { read = JSON.parse(text); } catch (error) { throw Object.assign(new Error(`This is not JSON: ${error.message}`), { param: "json" }); }
      if (read?.constructor !== Object) throw Object.assign(new Error("A rule is a JSON object."), { param: "json" });
      draft = read;
      for (const name of ["match", "pass"]) texts[name] = (Array.isArray(read[name]) ? read[name] : []).map((text) => ({ text: String(text) }));
    };
    node.addEventListener("input", (event) => {
      if (event.target.name === "reason") { reason = event.target.value; return; }
      try { take(event.target.value); node.field("json").say(""); drawTexts(); changed(); } catch (error) { node.field("json").say(error.message); }
    });
    shown = null;
    return node;
  }

  function drawLeft() {
    fill(left, tabs([["form", "Form"], ["json", "JSON"]], view, (id) => { view = id; drawLeft(); left.querySelector("[aria-selected=true]").focus(); }), view === "form" ? asForm() : asJson(), changes);
  }
  function drawTexts() {
    fill(right, summary, GROUPS.map(group), replay(() => api.post("/api/shield/rules/replay", { rule: filled(draft) })));
  }

  const box = dialog(stored ? `Edit ${stored.id}` : "New rule", h("div.grid2.bench", left, right), { kind: "full", closed: () => { clearTimeout(soon); running.abort(); } });
  drawLeft();
  drawTexts();
  changed();
  box.querySelector("input").focus();
}
