// Policies: what a score means for the keys that have one, and a text to try a draft on before it holds.

import { api, at, can } from "../api.js";
import { fill, h, time } from "../dom.js";
import { form, formDialog } from "../form.js";
import { keep, records, removal } from "../records.js";
import { ADD, button, dialog, facts, load, status, tag, toast, words } from "../ui.js";
import { diff, history, replay } from "./compare.js";
import { found } from "./playground.js";

export const CATEGORIES = ["injection", "jailbreak", "extraction", "indirect", "tool_abuse", "command", "sensitive_path", "exfiltration", "c2", "social_engineering", "encoding", "steganography", "secret", "pii", "financial"];

export async function draw(context, here) {
  const { main, tools, can, signal } = context;
  const body = h("section.panel");
  const mayAct = can("policies:manage");
  const again = records(body, "policies", signal, {
    none: "No policies yet. Keys without a policy follow the settings of the gateway.",
    columns: [
      { label: "Policy", cell: (row) => h("b", row.name), sort: (row) => row.name.toLowerCase() },
      { label: "Mode", cell: (row) => status(row.mode === "observe" ? "observe" : "active"), sort: (row) => row.mode },
      { label: "Review from", of: "review_score", align: "end", low: 1 },
      { label: "Block from", of: "block_score", align: "end" },
      { label: "Category actions", low: 2, cell: (row) => h("span.tags", Object.entries(row.category_actions).map(([name, act]) => tag(`${words(name)}: ${act}`))) },
      { of: "created_at", as: time, low: 3 },
    ],
    tools: mayAct ? (row) => h("span", button("Edit", () => edit(row, again)), " ", removal("policies", row, "First give its keys another policy.", again)) : (row) => button("Show", () => edit(row, again, true)),
  });
  fill(tools, mayAct && button("New policy", () => edit(null, again), ADD));
  fill(main, h("p.dim", "A policy sets the scores for REVIEW and BLOCK and can change the weight of categories. It applies to its keys from their next request."), body);
  return { moved: () => {} };
}

const DEFAULTS = { mode: "block", block_score: 60, review_score: 25, category_actions: {}, unscannable: "allow", outbound: "block", outbound_stream: "held", tool_injection: true, capture: "none", capture_days: 7 };
/** The fields that an operator sets, in one order. */
const fieldsOf = (policy) => ({ name: policy.name, ...Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, name === "category_actions" ? Object.fromEntries(Object.entries(policy[name] || {}).sort()) : policy[name] ?? DEFAULTS[name]])) });

function edit(row, again, isOnlyShown = false) {
  const set = row || DEFAULTS;
  const weights = h("div.weights", CATEGORIES.map((name) => h("label", h("span", words(name)), h("select", { name: `category ${name}`, "aria-label": words(name), data: { name } }, [["", "By its rules"], ["block", "Block"], ["review", "Review"], ["redact", "Mask"], ["allow", "Allow"]].map(([key, label]) => h("option", { value: key, selected: (set.category_actions[name] || "") === key }, label))))));
  const read = () => Object.fromEntries([...weights.querySelectorAll("select")].filter((one) => one.value).map((one) => [one.dataset.name, one.value]));
  const node = form([
    { name: "name", required: true, value: row?.name, max_chars: 64 },
    { name: "mode", value: set.mode, options: [["block", "Block from the block score"], ["observe", "Only observe: record, but let it pass"]] },
    { name: "review_score", label: "Review from score", type: "number", min: 1, max: 100, value: set.review_score, required: true },
    { name: "block_score", label: "Block from score", type: "number", min: 1, max: 100, value: set.block_score, required: true },
    { name: "unscannable", label: "Parts that the shield cannot scan (images, audio, files)", value: set.unscannable, options: [["allow", "Allow"], ["review", "For review"], ["block", "Block"]] },
    { name: "outbound", label: "Blocked replies", value: set.outbound, options: [["block", "Withhold"], ["redact", "Forward with matches masked"]] },
    { name: "outbound_stream", label: "Streamed replies", value: set.outbound_stream, options: [["held", "Forward the text as it is cleared"], ["whole", "Forward all of it at its end"]] },
    { name: "tool_injection", label: "Also scan tool descriptions for injection", type: "switch", value: set.tool_injection },
    { name: "capture", label: "Store the texts of scans and chats", value: set.capture, options: [["none", "No: only hash and length"], ["redacted", "Yes, with every match masked"], ["full", "Yes, in full"]], hint: "Anyone who may see requests sees masked texts. Only policy managers see texts stored unmasked." },
    { name: "capture_days", label: "Days to keep them", type: "number", min: 1, max: 365, value: set.capture_days, required: true, when: (values) => values.capture !== "none" },
    { name: "category_actions", label: "Category weights", type: "own", make: () => ({ node: weights, value: read }) },
  ], (values) => keep("policies", row, values), {
    label: row ? "Save policy" : "Create policy", cancel: () => box.close(), done: () => { box.close(); toast("Policy saved. It applies from the next request."); again(); },
  });
  const changes = h("div"), keys = h("div"), past = h("div");
  const draft = () => { const { name, ...values } = node.values(); return fieldsOf({ name, ...Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) }); };
  const compare = () => row && !isOnlyShown && fill(changes, h("h3", "Changes before you save"), diff(fieldsOf(row), draft()));
  node.addEventListener("input", compare);
  node.addEventListener("change", compare);
  compare();
  node.querySelector(".form-end").before(changes, keys);
  if (row && can("api_keys:read")) affected(keys, row);
  if (row && can("audit:read")) versions(past, row, isOnlyShown ? null : () => { box.close(); again(); });
  if (isOnlyShown) for (const input of node.querySelectorAll("input,select,button[type=submit]")) input.disabled = true;
  const result = h("div");
  const trial = form([{ name: "text", type: "area", rows: 4, required: true }, { name: "direction", options: [["inbound", "Inbound"], ["outbound", "Outbound"]] }], async (values) => {
    const { review_score, block_score, category_actions } = node.values();
    fill(result, found(await api.post("/api/shield/dry-run", { ...values, review_score, block_score, category_actions }), values.text));
  }, { label: "Try the draft", kind: "" });
  const box = dialog(row ? `Policy ${row.name}` : "New policy", [node, h("details.more", h("summary", "Dry run: try this draft on a text. Nothing is recorded."), trial, result),
    can("policies:manage") && replay(() => { const { name, ...values } = draft(); return api.post("/api/policies/replay", { ...values, policy: row?.id }); }), past, row && facts(["Created", time(row.created_at)], ["Created by", row.created_by])], { kind: "drawer" });
}

/** Say which keys a change of a policy is for. */
async function affected(node, row) {
  try {
    const mine = (await api.all("/api/config/api-keys", { limit: 100 })).filter((one) => one.policy === row.id && one.status === "active");
    fill(node, h("h3", mine.length === 1 ? "1 key has this policy" : `${mine.length} keys have this policy`), h("span.tags", mine.slice(0, 20).map((one) => tag(one.name)), mine.length > 20 && tag(`${mine.length - 20} more`)));
  } catch { /* the form is of use without it */ }
}

/** List the versions that the audit log still has. done: after a revert; null if nobody may. */
function versions(node, row, done) {
  return load(node, () => api.all("/api/audit", { resource_type: "policy", search: row.id, limit: 100 }), (events) => {
    const made = events.filter((one) => one.resource_id === row.id && one.after).map((one, index) => ({ version: row.version - index, when: time(one.timestamp), who: one.actor, value: fieldsOf(one.after) }));
    return made.length > 0 && h("div", h("h3", "History, from the audit log"), history(made, done && ((old) => formDialog(`Revert to version ${old.version}`, [], () => keep("policies", row, { ...old.value }), { label: "Revert", told: "Reverted, as a new version.", done, intro: diff(fieldsOf(row), old.value) }))));
  });
}
