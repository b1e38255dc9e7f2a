// "This was harmless": one dialog that closes the alerts of a request, and lets it pass next time as narrowly as wished.

import { api, at } from "../api.js";
import { fill, h, number, time } from "../dom.js";
import { form } from "../form.js";
import { code, dialog, facts, loading, toast, trouble, verdict } from "../ui.js";

const TITLES = { none: "Only close the alert", text: "This text, in any conversation", key_agent: "Its rules, for this key and agent", key: "Its rules, for this key", policy: "Its rules, for every key with this policy", report: "Report the rule" };

export const isActive = (alert) => ["open", "acknowledged", "investigating"].includes(alert.status);

/** Ask what to do about a harmless request. id: of the request, or of an alert. done: called after a change. */
export async function harmlessDialog(id, done) {
  const body = h("div.stack", loading());
  const box = dialog("This was harmless", body);
  let seen;
  try { seen = await api.get(at("harmless", id)); } catch (error) { fill(body, trouble(error)); return; }
  const active = seen.alerts.filter(isActive);
  const options = [...(active.length ? [{ exception: "none" }] : []), ...seen.options, { exception: "report" }];
  const node = form([
    { name: "exception", label: "What should pass from now on?", type: "own", make: () => choice(options) },
    { name: "note", label: "Why was it harmless?", type: "area", rows: 2, required: true, hint: "Appears in the audit log." },
    { name: "until", type: "expiry", days: "30", most: 90, when: (values) => !["none", "report", undefined].includes(values.exception) },
  ], ({ exception, note, until }) => api.post(at("harmless", id), { exception, note: note.replaceAll(/\s+/g, " ").trim(), ...(["none", "report"].includes(exception) ? {} : { until }) }), {
    label: "Mark as harmless", cancel: () => box.close(), done: (made) => { box.close(); toast(made.says, made.new_verdict && made.new_verdict.verdict !== "ALLOW" ? "bad" : "good"); done(made); },
  });
  fill(body,
    h("div.row-line", verdict(seen.verdict), h("b", `Score ${seen.score}`), h("span.dim", [seen.agent, seen.key_prefix].filter(Boolean).join(", ")), time(seen.occurred_at)),
    active.some((one) => one.count > 1) && h("div.banner.soso", h("span", `The alert counts ${number(Math.max(...active.map((one) => one.count)))} requests. All of them are closed with it; look at the others first.`)),
    active.length ? h("div", h("p", active.length > 1 ? "This closes these alerts, which the request added to:" : "This closes this alert, which the request added to:"), active.map((one) => facts(["Alert", one.title], ["Rule", code(one.rule)], ["Agent", one.agent], ["Key", code(one.key_prefix)], ["Last seen", time(one.last_seen)], ["Requests", number(one.count)])))
      : h("p.dim", seen.alerts.length ? "The alert of this request is closed already." : "This request has no alert."),
    !seen.may_approve && h("div.banner", h("span", "Your role proposes exceptions. They hold once a security manager approves them under Protection, Accepted risks.")),
    node);
}

/** The options as radio buttons, each with what it would let through. */
function choice(options) {
  const name = `exception-${Math.round(performance.now())}`;
  const first = options.find((one) => !one.unavailable);
  const node = h("div.checks", options.map((one) => h("label.check", h("input", { type: "radio", name, value: one.exception, checked: one === first, disabled: Boolean(one.unavailable) }), h("span", h("span.check-label", TITLES[one.exception]), h("span.hint", effect(one))))));
  return { node, value: () => node.querySelector("input:checked")?.value };
}

function effect(one) {
  if (one.exception === "none") return "The same text is blocked again. Within ten minutes it counts on the closed alert; any other text opens a new one.";
  if (one.exception === "report") return "An alert asks for a better rule. The text is blocked until then.";
  if (one.unavailable) return one.unavailable;
  const { lets_through: lets, suite, new_verdict: after } = one;
  return [
    h("span", `${one.covers}: `, one.rules.map((rule, index) => [index ? ", " : "", code(rule)]), "."), " ", after.says, h("br"),
    lets.lowered ? h("b", `In the last ${lets.days} days, ${number(lets.lowered)} other flagged ${lets.lowered === 1 ? "request" : "requests"} would have passed, ${number(lets.unblocked)} of them blocked ones`, lets.confirmed ? [", and ", number(lets.confirmed), " that someone took for an attack"] : "", ".") : !lets.unknown && `In the last ${lets.days} days, no other request would have passed.`,
    lets.unknown > 0 && h("b", ` For ${number(lets.unknown)} other ${lets.unknown === 1 ? "request" : "requests"}, only the text would show it.`),
    lets.is_partial && ` Only the newest ${number(lets.judged)} flagged requests were checked.`,
    lets.examples.length > 0 && h("span", " Newest: ", lets.examples.map((each, index) => [index ? ", " : "", h("a", { href: `#/traffic/${each.request_id}`, target: "_blank", rel: "noopener" }, time(each.occurred_at))]), "."),
    suite && [" ", suite.lost ? h("b", `${number(suite.lost)} of ${number(suite.found)} attacks of the validation suite would pass.`) : "No attack of the validation suite would pass."],
  ];
}
