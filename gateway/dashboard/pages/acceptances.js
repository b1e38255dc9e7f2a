// Accepted risks: who lets what pass, why and until when. The detection stays listed and adds nothing to the score.

import { api, at } from "../api.js";
import { fill, h, time } from "../dom.js";
import { formDialog } from "../form.js";
import { keep } from "../records.js";
import { ADD, button, confirm, status, toast } from "../ui.js";
import { cut, table } from "../table.js";

const SCOPES = { finding: "One text", rule_agent: "The rule, for one agent with one key", rule_key: "The rule, for one key", rule_policy: "The rule, for the keys of a policy", rule: "The rule, for everyone" };

export async function draw(context) {
  const { main, tools, can, signal, link } = context;
  const mayAct = can("risk_acceptances:manage");
  const of = (row) => row.agent ? `${row.agent}, ${row.key || "any key"}` : row.key || row.policy;
  const act = (row, verb, told) => button(verb, async () => { await (verb === "Approve" ? api.post(at("risk-acceptances", row.id, "approve")) : api.remove(at("risk-acceptances", row.id))); toast(told); list.reload(); }, { kind: verb === "Approve" ? "primary" : "" });
  const list = table({
    label: "Accepted risks",
    context, path: "/api/risk-acceptances",
    none: "No accepted risks.",
    columns: [
      { label: "Rule", by: "rule", cell: (row) => h("a", { href: link("shield", ["rules", row.rule]) }, row.rule) },
      { label: "Covers", by: "covers", low: 1, cell: (row) => cut(row.scope === "rule_agent" && !row.key ? "The rule, for one agent with any key" : SCOPES[row.scope] || row.scope) },
      { label: "Agent, key or policy", low: 2, cell: (row) => cut(of(row)) },
      { label: "Why", of: "reason", as: cut, wide: true, low: 2 },
      { label: "Accepted by", low: 3, cell: (row) => cut(row.proposed_by ? `${row.accepted_by}, proposed by ${row.proposed_by}` : row.accepted_by) },
      { label: "Request", low: 3, cell: (row) => (row.request ? h("a", { href: link("traffic", [row.request]) }, "Open") : h("span.dim", "–")) },
      { of: "until", as: time, by: "until" },
      { of: "status", as: status },
    ],
    tools: mayAct ? (row) => (row.status === "proposed" ? h("span", act(row, "Approve", "Approved. It holds from the next text."), " ", act(row, "Decline", "Declined.")) : row.status === "active" ? h("span", button("Change", () => formDialog("Change the acceptance", [
      { name: "reason", label: "Why", type: "area", rows: 3, value: row.reason, required: true }, { name: "until", type: "expiry", value: row.until, most: 90 },
    ], (values) => keep("risk-acceptances", row, values), { told: "Changed.", done: list.reload })), " ",
    button("Revoke", () => confirm("Revoke this acceptance?", `${row.rule} counts again from the next text. The record remains.`, "Revoke", async () => { await api.remove(at("risk-acceptances", row.id)); toast("Revoked."); list.reload(); }))) : null) : null,
  });
  fill(tools, mayAct && button("Accept a risk", () => acceptDialog(list.reload), ADD));
  fill(main, h("section.panel", list.node));
  return { press: list.press };
}

/** Ask for what an acceptance needs. */
function acceptDialog(done) {
  const isOf = (...scopes) => (values) => scopes.includes(values.scope);
  return formDialog("Accept a risk", [
    { name: "scope", label: "Covers", options: ["rule_agent", "rule_key", "rule_policy", "rule"].map((scope) => [scope, SCOPES[scope]]) },
    { name: "rule", required: true, hint: "The rule’s id, such as override-prior-orders." },
    { name: "agent", hint: "The agent’s name.", when: isOf("rule_agent"), required: true },
    { name: "key", hint: "The key’s prefix. An agent without a key is covered with every key that claims its name.", when: isOf("rule_agent", "rule_key") },
    { name: "policy", hint: "The policy’s name.", when: isOf("rule_policy"), required: true },
    { name: "reason", label: "Why", type: "area", rows: 3, required: true, hint: "Appears in the audit log." },
    { name: "until", type: "expiry", days: "30", most: 90 },
  ], async ({ agent, key, policy, ...values }) => {
    if (values.scope === "rule_agent" && agent && !key) await agreed(agent);
    const what = { rule_agent: { agent, ...(key ? { key } : { any_key: true }) }, rule_key: { key }, rule_policy: { policy }, rule: {} }[values.scope];
    return api.post("/api/risk-acceptances", { ...values, ...what });
  }, { label: "Accept", told: "Accepted. It holds from the next text.", done });
}

/** Ask whether every key is meant that claims an agent's name; without a yes nothing is sent. */
function agreed(agent) {
  return new Promise((yes, no) => {
    const box = confirm("Accept it for every key?", `Anyone may claim this name. The acceptance would cover every key that sends “${agent}”. Enter a key to limit it.`, "Accept for every key", async () => yes());
    box.addEventListener("close", () => no(new DOMException("Not agreed.", "AbortError")));
  });
}
