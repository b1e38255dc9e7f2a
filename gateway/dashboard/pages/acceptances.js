// Accepted risks: who lets what pass, why and until when. The detection stays listed and adds nothing to the score.

import { api, at } from "../api.js";
import { fill, h, time } from "../dom.js";
import { formDialog } from "../form.js";
import { button, confirm, status, toast } from "../ui.js";
import { cut, table } from "../table.js";

const SCOPES = { finding: "Only this finding", rule_agent: "The rule, for one agent with one key", rule: "The rule, for everyone" };

export async function draw(context) {
  const { main, tools, can, signal, link } = context;
  const mayAct = can("risk_acceptances:manage");
  const list = table({
    label: "Accepted risks, newest first",
    load: (cursor) => api.page("/api/risk-acceptances", { limit: 50, cursor }, signal),
    none: "No accepted risks.",
    columns: [
      { label: "Rule", cell: (row) => h("a", { href: link("shield", ["rules", row.rule]) }, row.rule) },
      { label: "Covers", low: 1, cell: (row) => cut(row.scope === "rule_agent" && !row.key ? "The rule, for one agent with any key" : SCOPES[row.scope] || row.scope) },
      { label: "Agent and key", low: 2, cell: (row) => cut(row.agent && `${row.agent}, ${row.key || "any key"}`) },
      { label: "Why", wide: true, low: 2, cell: (row) => cut(row.reason) },
      { label: "By", low: 3, cell: (row) => cut(row.accepted_by) },
      { label: "Until", cell: (row) => time(row.until) },
      { label: "State", cell: (row) => status(row.status) },
    ],
    tools: mayAct ? (row) => (row.status === "active" ? h("span", button("Change", () => formDialog("Change the acceptance", [
      { name: "reason", label: "Why", type: "area", rows: 3, value: row.reason, required: true }, { name: "until", label: "Until", type: "expiry", value: row.until, most: 90 },
    ], (values) => api.patch(at("risk-acceptances", row.id), { ...values, version: row.version }), { told: "Changed.", done: list.reload })), " ",
    button("Revoke", () => confirm("Revoke this acceptance?", `${row.rule} counts again from the next text. The record remains.`, "Revoke", async () => { await api.remove(at("risk-acceptances", row.id)); toast("Revoked."); list.reload(); }))) : null) : null,
  });
  fill(tools, mayAct && button("Accept a risk", () => acceptDialog({}, list.reload), { kind: "primary", sign: "plus" }));
  fill(main, h("section.panel", list.node));
  return { press: list.press };
}

/** Ask for what an acceptance needs. given: {rule, agent, key, digest, alert} as far as they are known. */
export function acceptDialog(given, done) {
  const scopes = [(given.digest || given.alert) && ["finding", SCOPES.finding], ["rule_agent", SCOPES.rule_agent], ["rule", SCOPES.rule]].filter(Boolean);
  const isOfOne = (values) => values.scope === "rule_agent";
  return formDialog("Accept a risk", [
    { name: "scope", label: "Covers", type: "select", options: scopes },
    { name: "rule", label: "Rule", value: given.rule, required: true, hint: "The rule’s id, such as override-prior-orders." },
    { name: "agent", label: "Agent", value: given.agent, hint: "The agent’s name.", when: isOfOne },
    { name: "key", label: "Key", value: given.key, hint: "The key’s prefix. Without it, every key that claims the agent’s name is covered.", when: isOfOne },
    { name: "reason", label: "Why", type: "area", rows: 3, required: true, hint: "Appears in the audit log." },
    { name: "until", label: "Until", type: "expiry", days: "30", most: 90 },
  ], async ({ agent, key, rule, ...values }) => {
    if (isOfOne(values) && agent && !key) await agreed(agent);
    const what = { rule_agent: { rule, agent, ...(key ? { key } : { any_key: true }) }, rule: { rule }, finding: given.alert ? { alert: given.alert } : { rule, digest: given.digest } }[values.scope];
    return api.post("/api/risk-acceptances", { ...values, ...what, request: given.request });
  }, { label: "Accept", done: (made) => { toast(`Accepted. ${made.new_verdict.says}`, made.new_verdict.verdict === "ALLOW" ? "good" : "bad"); if (done) done(made); } });
}

/** Ask whether every key is meant that claims an agent's name; without a yes nothing is sent. */
function agreed(agent) {
  return new Promise((yes, no) => {
    const box = confirm("Accept it for every key?", `Anyone may claim this name. The acceptance would cover every key that sends “${agent}”. Enter a key to limit it.`, "Accept for every key", async () => yes());
    box.addEventListener("close", () => no(new DOMException("Not agreed.", "AbortError")));
  });
}
