// The rules of the shield as they hold here: found, shown with their examples, overridden, and those of one's own written.

import { api, at } from "../api.js";
import { fill, h, number, time } from "../dom.js";
import { formDialog } from "../form.js";
import { filters } from "../filters.js";
import { ADD, button, code, facts, load, severity, SEVERITIES, status, tag, words } from "../ui.js";
import { cut, table } from "../table.js";
import { diff, history, replay } from "./compare.js";
import { detail } from "./detail.js";
import { workbench } from "./workbench.js";

export async function draw(context, here) {
  const { main, tools, can, signal, link } = context;
  let all = [], values = here.query, list = null;
  const body = h("section.panel"), bar = h("div");
  const show = detail(context, ["shield", "rules"], (id) => one(id, context, () => again()));
  const fits = (row) => (!values.category || row.category === values.category) && (!values.severity || row.severity === values.severity)
    && (!values.state || { on: row.enabled, off: !row.enabled, changed: row.version > 0 && (!row.enabled || row.severity !== row.file_severity), hit: row.hits > 0, never: !row.hits, own: row.source !== "rules" }[values.state])
    && (!values.search || `${row.id} ${row.name} ${row.description} ${row.standards.join(" ")}`.toLowerCase().includes(values.search.toLowerCase()));
  const again = load(body, () => api.page("/api/shield/rules", {}, signal), ({ items }) => {
    all = items;
    if (list) { list.set(all.filter(fits)); return undefined; }
    fill(bar, filters([
      { name: "search", placeholder: "Name, text, standard" },
      { name: "category", options: ["", ...new Set(all.map((row) => row.category))] },
      { name: "severity", options: ["", ...SEVERITIES] },
      { name: "state", options: [["", "Any"], ["on", "Enabled"], ["off", "Disabled"], ["changed", "Changed"], ["own", "Your own"], ["hit", "Recent matches"], ["never", "No recent matches"]] },
    ], values, (change) => { values = context.filter(change); list.set(all.filter(fits)); }));
    list = table({
      label: "Rules", rows: all.filter(fits), href: (row) => link("shield", ["rules", row.id], context.place().query), none: "No rule matches. Clear some filters.", sorted: { index: 3, down: true },
      columns: [
        { label: "Rule", wide: true, cell: (row) => cut(row.name, row.description), sort: (row) => row.name.toLowerCase() },
        { label: "Severity", cell: (row) => severity(row.severity), sort: (row) => SEVERITIES.indexOf(row.severity) },
        { of: "category", as: words, low: 1, sort: true },
        { label: "Hits in 7 days", of: "hits", as: number, low: 1, sort: true },
        { label: "Direction", low: 2, cell: (row) => row.direction.join(", "), sort: (row) => row.direction.join() },
        { label: "Standards", low: 3, cell: (row) => cut(row.standards.join(", ")) },
        { label: "State", low: 1, cell: (row) => (row.enabled ? (row.severity !== row.file_severity ? tag("Changed", "accent") : row.source !== "rules" ? tag("Your own") : h("span.dim", "Enabled")) : status("disabled")), sort: (row) => Number(row.enabled) },
      ],
    });
    return list.node;
  });
  fill(tools, can("shield:manage") && button("New rule", () => workbench(null, (made) => { again(); context.go("shield", ["rules", made.id]); }), ADD));
  fill(main, bar, body);
  show(here);
  return { moved: (to) => show(to), press: (event) => list?.press(event) };
}

function one(id, context, changed) {
  if (id.startsWith("detector:")) return { title: "Detector", body: h("p", "Not a rule but the detector ", h("a", { href: "#/shield/detectors" }, id.split(":")[1]), " says this.") };
  const body = h("div.stack");
  const ask = async () => {
    const rule = await api.get(at("shield/rules", id), {}, context.signal);
    return [rule, rule.source === "stored" ? await api.all(`${at("shield/rules", id)}/history`, {}, context.signal) : []];
  };
  const again = load(body, ask, ([rule, versions]) => {
    const mayAct = context.can("shield:manage");
    const after = () => { again(); changed(); };
    const save = (fields, more, label, told, reason = true) => formDialog(`${label}: ${rule.name}`, [
      ...fields, { name: "reason", label: "Why", type: "area", rows: 3, required: reason, hint: "Shown in the audit log and beside the rule." },
    ], (values) => api.patch("/api/shield/rules", { rule: rule.id, version: rule.version, ...more, ...values }), { label, told, done: after });
    return [
      h("div.row-line", severity(rule.severity), tag(words(rule.category)), rule.source !== "rules" && tag("Your own"), rule.enabled ? null : status("disabled"), rule.severity !== rule.file_severity && h("span.dim", `the rule file says ${rule.file_severity}`)),
      h("h2", rule.name), h("p", rule.description),
      rule.changed_at && h("div.banner.soso", h("span", h("b", rule.enabled ? "Changed" : "Disabled"), " by ", rule.changed_by, " on ", time(rule.changed_at), rule.reason && [": ", rule.reason])),
      mayAct && h("div.row-line",
        versions.length > 0 && [button("Edit", () => workbench(versions[0], after), { kind: "primary" }), button("Remove", () => remove(id, () => { changed(); context.go("shield", ["rules"]); }))],
        rule.enabled ? button("Disable", () => save([], { enabled: false }, "Disable", "The rule is disabled in every worker."), { kind: "danger" }) : null,
        rule.enabled ? null : button("Reset", async () => { await api.patch("/api/shield/rules", { rule: rule.id, enabled: true, version: rule.version }); after(); }, { kind: "primary" }),
        button("Change severity", () => save([{ name: "severity", value: rule.severity === rule.file_severity ? "default" : rule.severity, options: [["default", `As in the file (${rule.file_severity})`], ...SEVERITIES.map((name) => [name, words(name)])] }], {}, "Change severity", "Severity changed.", false))),
      facts(["Id", code(rule.id)], ["Hits in 7 days", number(rule.hits)], ["Confidence", number(rule.confidence)], ["Direction", rule.direction.join(", ")], ["Read as", rule.view === "text" ? "The text as sent" : "The normalized text"], ["Standards", rule.standards.length ? h("span.tags", rule.standards.map((each) => tag(each))) : "–"], rule.validator && ["Checked by", code(rule.validator)]),
      h("div", h("h3", "Pattern"), h("pre.json", [rule.pattern, ...Object.entries(rule.patterns).map(([name, one]) => `${name}: ${one}`)].filter(Boolean).join("\n") || rule.literals.join("\n"))),
      h("div.grid2", examples("Must match", rule.match), examples("Must not match", rule.pass)),
      mayAct && rule.enabled && replay(() => api.post("/api/shield/rules/replay", { without: id }), "What would change without it"),
      versions.length > 0 && h("div", h("h3", "History"), history(versions.map((one) => ({ version: one.version, when: time(one.changed_at), who: one.changed_by, reason: one.reason, value: one.rule })), mayAct && ((old) => revert(id, versions[0], old, after)))),
    ];
  });
  return { title: "Rule", body };
}

const REASON = { name: "reason", required: true, hint: "Appears in the audit log and the history.", max_chars: 200 };
const remove = (id, done) => formDialog("Remove this rule?", [REASON], (values) => api.remove(at("shield/rules", id), values), { label: "Remove", kind: "danger", told: "Rule removed.", done, intro: `Removes ${id} from every worker. Its history stays.` });
const revert = (id, newest, old, done) => formDialog(`Revert to version ${old.version}`, [REASON], (values) => api.patch(at("shield/rules", id), { ...values, to: old.version, version: newest.version }), { label: "Revert", told: "Reverted, as a new version.", done, intro: diff(newest.rule, old.value) });
const examples = (title, list) => h("div", h("h3", title), h("ul.list", list.map((text) => h("li", h("code", text)))));
