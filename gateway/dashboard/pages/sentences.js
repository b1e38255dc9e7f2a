// An event of the audit log as one sentence: who did what to which thing, with a link to it.

import { h, plain, time } from "../dom.js";
import { name } from "../names.js";
import { words } from "../ui.js";

// Where the page of a thing is; after a slash, its id follows.
const PLACES = { alert: "alerts/", api_key: "keys/", agent: "agents/", incident: "incidents/", request: "traffic/", rule: "shield/rules/", local_rule: "shield/rules/", policy: "shield/policies", detector: "shield/detectors", risk_acceptance: "shield/acceptances", user: "settings/users", session: "settings/sessions", provider: "settings/providers", access_entry: "settings/access", event_output: "settings/outputs", setting: "settings/options", budget: "cost", report: "audit/reports", report_schedule: "audit/reports", trust_audit: "posture", security_scan: "posture/scans", peer: "settings/fleet" };
const VERBS = { investigating: "investigates", false_positive: "marked as harmless", refused: "was refused", run: "ran", overridden: "overrode" };
const PLAIN = "created changed removed revoked rotated approved declined blocked unblocked retired registered imported exported acknowledged resolved reopened suppressed disabled enabled ended verified reset tested sent".split(" "); // verbs that end an action as they stand in a sentence
const NOUNS = { api_key: "key", risk_acceptance: "risk acceptance", access_entry: "access entry", local_rule: "rule" };

const named = (event) => { const from = event.after || event.before || {}, found = from.name ?? from.username ?? from.rule ?? event.details?.name ?? from.value; return typeof found === "string" && !/^[a-z]{2,3}_[0-9A-Z]{26}$/.test(found) ? found : null; };
const rules = (event) => [...new Set((event.details?.detections || [event.details?.inbound, event.details?.outbound].flatMap((one) => one?.detections || [])).map((one) => one.rule))].slice(0, 3).join(", ");
const agent = (event) => event.agent && event.agent !== event.actor ? [" as ", h("b", event.agent)] : "";
const model = (event) => h("b", event.resource_id || "a model");

// What follows the actor, or a whole sentence of its own.
const SAID = {
  chat_completed: (event) => ["chatted with ", model(event), agent(event)],
  chat_failed: (event) => ["got no reply from ", model(event), agent(event)],
  chat_blocked: (event) => ["had a chat with ", model(event), " blocked", agent(event), rules(event) && `: ${rules(event)}`],
  chat_tried: (event) => ["tried a chat with ", model(event)],
  shield_scan_block: (event) => ["had a text blocked", agent(event), `: ${rules(event)}`],
  shield_scan_review: (event) => ["had a text flagged for review", agent(event), `: ${rules(event)}`],
  user_signed_in: () => "signed in", user_signed_out: () => "signed out", sign_in_failed: () => "failed to sign in", sign_in_throttled: () => "was throttled after failed sign-ins",
  user_password_changed: (event) => ["set a new password for ", thing(event)],
  api_key_refused: () => "was refused: the key is not valid", rate_limit_exceeded: () => "exceeded the rate limit", session_refused: () => "was refused: the session is not valid", api_key_first_used: () => "used the key for the first time",
  risk_accepted: (event) => ["accepted the risk of ", thing(event)], request_harmless: (event) => ["marked ", thing(event), " as harmless"],
  alert_false_positive: (event) => ["marked ", thing(event), " as harmless"], incident_exported: (event) => ["exported the evidence of ", thing(event)],
  audit_exported: () => "exported the audit log", backup_created: () => "made a backup", backup_restored: () => "restored a backup",
  shield_tests_run: () => "ran the validation suite", gateway_started: (event) => `started, version ${event.details?.version ?? "unknown"}`, gateway_stopped: () => "stopped", sessions_ended: () => "ended sessions", gateway_reloaded: () => "reloaded its rules", audit_pruned: (event) => `deleted ${event.details?.events ?? "old"} expired events`, incident_stopped: () => "stopped an incident",
};

/** What an event is about: its noun and name, linked where there is a page for it. */
function thing(event) {
  const type = event.resource_type;
  if (!type) return "";
  const noun = `the ${NOUNS[type] || words(type).toLowerCase()}`, place = PLACES[type], id = event.resource_id;
  const text = [noun, named(event) ? [" ", h("b", named(event))] : type.endsWith("rule") && id ? [" ", h("b", id)] : ""];
  return place ? h("a", { href: `#/${place}${place.endsWith("/") ? encodeURIComponent(id || "") : ""}` }, text) : text;
}

/** The sentence of an event, as nodes. */
export function sentence(event) {
  const { action } = event;
  let rest = SAID[action]?.(event);
  if (!rest) {
    const verb = [...PLAIN, ...Object.keys(VERBS)].find((one) => action.endsWith(`_${one}`));
    rest = action.startsWith("mcp:") ? ["used the MCP tool ", h("b", action.split(":")[1])] : verb && event.resource_type ? [VERBS[verb] || verb, " ", thing(event)] : [words(action).toLowerCase(), event.resource_type ? [": ", thing(event)] : ""];
  }
  return h("span", h("b", event.actor === "gateway" ? "The gateway" : event.actor === "unknown" ? "Someone unknown" : event.actor), " ", rest, event.outcome !== "success" && event.reason && h("span.dim", ` (${words(event.reason).toLowerCase()})`));
}

/** The fields that an event changed: before and after. */
export function changes(event) {
  const before = event.before || {}, after = event.after || {};
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((one) => plain(before[one]) !== plain(after[one]));
  return names.length ? h("table.ledger", { "aria-label": "Changes" }, h("thead", h("tr", h("th", "Field"), h("th", "Before"), h("th", "After"))), h("tbody", names.map((one) => h("tr", h("td", words(one)), h("td", plain(before[one])), h("td", plain(after[one])))))) : null;
}

/** Whom an alert or an incident is about, and since when: names and values. */
export const about = (one) => [["Agent", one.agent], ["Key", name(one.key_prefix)], ["First seen", time(one.first_seen)], ["Last seen", time(one.last_seen)], ["Assigned to", one.assigned_to]];
/** What was done to an alert or an incident, step by step. */
export const timeline = (steps) => h("div", h("h3", "Timeline"), steps.length ? h("ol.timeline", steps.map((step) => h("li", h("div", h("b", words(step.action)), " ", h("span.dim", "by "), step.actor, " ", h("span.dim.small", time(step.occurred_at))), step.note && h("p", step.note)))) : h("p.dim", "No actions yet."));
