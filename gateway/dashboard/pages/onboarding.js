// What a new gateway still needs before it is in service: a list that ticks itself, and that is gone when all is done.

import { api } from "../api.js";
import { fill, h, icon } from "../dom.js";
import { button, headed } from "../ui.js";

const HIDDEN = "gateway.onboarding";

/** Draw the list into `node`, as far as the role may do something about it. */
export async function onboarding(node, { can, link, session, signal, changePassword }) {
  if (localStorage.getItem(HIDDEN)) return;
  const ask = (permission, path, values) => (can(permission) ? api.page(path, values, signal).then((page) => page.items, () => null) : null);
  const [providers, requests, keys, budgets, outputs, posture] = await Promise.all([
    ask("providers:read", "/api/providers"), ask("traffic:read", "/api/traffic", { limit: 1 }), ask("api_keys:read", "/api/config/api-keys", { limit: 200 }), ask("budgets:read", "/api/budgets"), ask("settings:read", "/api/event-outputs"),
    can("posture:read") ? api.get("/api/posture", { since: "1h" }, signal).catch(() => null) : null,
  ]);
  const check = (id) => posture?.trust_audit?.checks.find((one) => one.id === id)?.status;
  const steps = [
    session.asksForUser && ["Change the first password", !session.isFirstPassword, button("Change", () => changePassword(), { kind: "small" })],
    providers && can("providers:manage") && ["Connect a model", providers.some((one) => one.enabled && one.type !== "echo"), link("settings", ["providers"])],
    keys && can("api_keys:manage") && ["Create a key of your own", keys.some((one) => one.created_by !== "first-start"), link("keys", [], { create: "1" })],
    requests && ["See the first request", requests.length > 0, link("traffic")],
    posture && can("posture:manage") && ["Run the trust audit", Boolean(posture.trust_audit), link("posture")],
    posture?.trust_audit && ["Serve HTTPS, or listen on loopback behind a proxy", check("exposure-tls") === "pass", link("posture", ["checks", "exposure-tls"])],
    budgets && can("budgets:manage") && ["Set a budget", budgets.length > 0, link("cost")],
    outputs && can("settings:manage") && ["Send alerts to a person or a SIEM, and test it", outputs.some((one) => one.sent > 0), link("settings", ["outputs"])],
    posture?.trust_audit && ["Make a backup", check("backup-age") === "pass", link("posture", ["checks", "backup-age"])],
  ].filter(Boolean);
  const done = steps.filter(([, isDone]) => isDone).length;
  if (signal.aborted || done === steps.length) { fill(node); return; }
  const hide = button("Hide", () => { localStorage.setItem(HIDDEN, "1"); fill(node); }, { kind: "quiet" });
  fill(node, headed(`Set up: ${done} of ${steps.length} done`, hide, h("ol.list", steps.filter(([, isDone]) => !isDone).map(([text, , to]) => h("li", icon("next"), h("span.grow", text), typeof to === "string" ? h("a.btn.small", { href: to }, "Open") : to))),
    done > 0 && h("p.dim.small", "Done: ", steps.filter(([, isDone]) => isDone).map(([text]) => text.charAt(0).toLowerCase() + text.slice(1)).join("; "), ".")));
}
