// Names of rules and keys, for lists that state ids and prefixes.

import { api, can } from "./api.js";
import { h } from "./dom.js";

const names = new Map([["attack-model", "Resembles known attacks"]]), FRESH_MS = 300000;
let asked = -FRESH_MS;

/** Learn the names that the role may read, again after five minutes. */
export async function learn() {
  if (performance.now() - asked < FRESH_MS) return;
  const take = (path, id) => api.all(path).then((items) => { for (const one of items) names.set(one[id], one.name); }, () => {});
  await Promise.all([can("shield:read") && take("/api/shield/rules", "id"), can("api_keys:read") && take("/api/config/api-keys", "prefix")]);
  asked = performance.now();
}

/** The name of a rule's id or of a key's prefix, or the id itself. */
export const nameOf = (id) => names.get(id) || id;
/** The same to be shown, with the id or prefix on hover. */
export const name = (id) => h("span.cut", { title: id }, nameOf(id) || "–");
/** A link to a rule. */
export const ruleLink = (id, label = name(id)) => h("a", { href: `#/shield/rules/${encodeURIComponent(id)}` }, label);
