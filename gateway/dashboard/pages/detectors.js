// Detectors: guard models and classifiers that judge texts beside the shield, with a button that tries each.

import { api, at } from "../api.js";
import { fill, h, millis, percent } from "../dom.js";
import { formDialog } from "../form.js";
import { keep, keyField, PRIVATE, records, removal } from "../records.js";
import { ADD, bold, button, code, dialog, failed, status, toast, words } from "../ui.js";
import { table } from "../table.js";

const KINDS = { openai_chat: "Guard model, by chat completions", tei_predict: "Classifier on TEI", vllm_classify: "Classifier on vLLM", openai_moderations: "Moderations API", fms_contents: "FMS detector", presidio: "Presidio", json: "Any other JSON API" };
const FORMATS = ["llama_guard", "qwen3guard", "granite_guardian_3", "granite_guardian_3_3", "granite_guardian_4", "shieldgemma", "gpt_oss_safeguard", "labels"];
const LIMITS = ["timeout_ms", "window_chars", "overlap_chars", "cache_seconds", "max_concurrent"];

export async function draw({ main, tools, can, signal }) {
  const body = h("section.panel"), mayAct = can("policies:manage");
  const again = records(body, "detectors", signal, {
    none: "No detectors. The shield judges alone.",
    columns: [
      { label: "Detector", of: "name", as: bold, sort: true }, { label: "Kind", low: 2, cell: (row) => words(row.format || row.kind) },
      { label: "State", cell: (row) => h("span", status(row.status), row.problem && h("span.dim", " ", row.problem)) }, { of: "effect", as: words, sort: true }, { of: "when", low: 1 },
      { of: "on_error", low: 1, as: words }, { label: "Texts", of: "directions", low: 3, as: (list) => list.map(words).join(", ") }, { label: "Address", of: "base_url", as: code, low: 3 },
    ],
    tools: mayAct ? (row) => h("span", button("Test", () => tryIt(row, again)), " ", button(row.enabled ? "Disable" : "Enable", async () => { await keep("detectors", row, { enabled: !row.enabled }); toast("Saved. It applies from the next text."); again(); }), " ", button("Edit", () => edit(row, again)), " ", removal("detectors", row, "It is not asked again, and the gateway deletes its stored key.", again)) : null,
  });
  fill(tools, mayAct && button("Add detector", () => edit(null, again), ADD));
  fill(main, h("p.dim", "A detector is a guard model or classifier that you run. It judges texts that the shield does not block, for every policy. Test it and compare it in the validation suite before it may block."), body);
  return {};
}

async function tryIt(row, again) {
  const found = await api.post(at("detectors", row.id, "test"));
  again();
  if (!found.ok) return failed({ message: found.error });
  dialog(`Test of ${row.name}`, [table({ label: "What it said", rows: found.said, columns: [
    { of: "text", wide: true }, { label: "Result", of: "is_found", as: (isFound) => status(isFound ? "found" : "not found") }, { of: "label", as: (label) => code(label || "–") }, { of: "probability", align: "end", as: percent },
  ] }).node, h("p.dim", `Answered in ${millis(found.latency_ms)}. `, found.model)]);
}

/** The labels that a text lists, one a line: its name, a colon and its category. */
const read = (text) => Object.fromEntries(text.split("\n").filter((one) => one.trim()).map((one) => /^(.*?)\s*:?\s*([a-z0-9_]*)\s*$/.exec(one).slice(1)));

function edit(row, again) {
  const of = (kind) => (values) => (row?.kind || values.kind) === kind, isChat = of("openai_chat"), isJson = of("json");
  const pick = (name, label, options) => ({ name, label, type: "select", options: Object.entries(options) });
  const open = (name, label, options, hint) => ({ ...pick(name, label, { "": row ? `No change: ${words(String(row[name])).toLowerCase()}` : "By default", ...options }), value: "", hint });
  formDialog(row ? `Detector ${row.name}` : "Add detector", [
    { name: "name", required: true, max_chars: 64, hint: "Lower-case letters, digits and ._-" },
    !row && pick("kind", "Kind", KINDS),
    { name: "base_url", label: "Address", required: true, placeholder: "http://gpu.example.com:8000/v1", hint: "With /v1 for chat completions and moderations; for any other JSON API, the full URL." },
    keyField(row), PRIVATE,
    { name: "format", options: FORMATS, when: isChat },
    { name: "model", max_chars: 200, hint: "FMS: the detector id. Presidio: the language.", when: (values) => !isJson(values) && !of("tei_predict")(values) },
    { name: "prompt", label: "Criterion or policy", type: "area", when: isChat },
    { name: "body", label: "Request", type: "area", placeholder: '{"text": "{{text}}"}', hint: "JSON, with {{text}} in place of the text.", when: isJson },
    { name: "score_path", placeholder: "/result/score", when: isJson }, { name: "label_path", placeholder: "/result/label", when: isJson },
    { name: "labels", type: "area", value: Object.entries(row?.labels || {}).map((pair) => pair.join(": ")).join("\n"), placeholder: "LABEL_1: injection\nLABEL_0: safe", hint: "One per line: the label, and the category that it counts as, or safe. * stands for all others." },
    pick("effect", "Effect", { observe: "Observe: only record what it says", points: "Points: add to the score", review: "Review: at least REVIEW", veto: "Veto: block" }),
    { name: "points", type: "number", min: 1, max: 100, when: (values) => values.effect === "points" },
    { name: "threshold", label: "Lowest probability that counts", type: "number", min: 0, max: 1, step: 0.01 },
    { name: "directions", label: "Texts", type: "checks", options: [["inbound", "Prompts"], ["outbound", "Replies"]] },
    { name: "when", label: "Ask", required: true, hint: "always, score 10-59 (of the shield), category injection,jailbreak (that it found), or sample 0.05." },
    open("on_error", "Without a judgement", { block: "Block", review: "Review", allow: "Allow: an overload lets attacks pass" }, "By default: block for a veto, allow for observe, else review."),
    open("send_masked", "Mask secrets first", { true: "Yes", false: "No" }, "By default: yes, unless it is on this host."),
    { name: "limits", label: "Show limits", type: "switch" },
    ...LIMITS.map((name) => ({ name, type: "number", value: "", placeholder: row?.[name] ?? "By default", when: (values) => values.limits })),
    { name: "enabled", type: "switch" },
  ], ({ limits, api_key, labels, send_masked, ...values }) => keep("detectors", row, { ...values, api_key: api_key || undefined, labels: read(labels), send_masked: send_masked && send_masked === "true" }), { of: row || { threshold: 0.5, points: 25, when: "always", directions: ["inbound"] }, label: row ? "Save" : "Add detector", told: (made) => (made.problem ? [`Saved, but the detector has no key. ${made.problem}`, "bad"] : "Saved. Test it before you rely on it."), done: again });
}
