// What every page is made of: badges, states of loading, dialogs, toasts, tabs. Asks the gateway for nothing.

import { h, fill, icon } from "./dom.js";

export const SEVERITIES = ["critical", "high", "medium", "low"];
const CAPITALS = { pii: "PII", c2: "Command and control", usd: "USD", mcp: "MCP", api: "API", html: "HTML", csv: "CSV", json: "JSON", jsonl: "JSON lines", cli: "Command line", ok: "OK", sha256: "SHA-256", chars: "Characters", ip: "IP", status: "State" };
/** A name of the API as a label. */
export const words = (text) => CAPITALS[text] || String(text ?? "–").replace(/_at$/, "").replaceAll(/[_-]/g, " ").replace(/^./, (first) => first.toUpperCase());

/** A severity: shape, word and colour. */
export function severity(name) {
  const known = SEVERITIES.includes(name) ? name : "low";
  return h(`span.badge.sev-${known}`, icon(known), words(name));
}
/** A verdict: shape, word and colour where it is news, and else a plain word. */
export const verdict = (name) => (["BLOCK", "REVIEW"].includes(name) ? h(`span.badge.v-${name}`, icon(name), name) : h("span.dim.v-ALLOW", name === "ALLOW" ? "Allowed" : words(name)));

const GOOD = ["active", "healthy", "online", "pass", "enabled", "success", "resolved", "ok", "completed", "connected", "closed"];
const BAD = ["revoked", "failed", "fail", "blocked", "critical", "offline", "unhealthy", "down", "exceeded", "disabled", "open-circuit", "refused", "error", "broken"];
const SOSO = ["open", "warn", "warning", "expired", "stale", "degraded", "idle", "investigating", "half_open", "half-open", "pending", "proposed", "running", "observe", "soft_limit"];
/** A state of anything: a dot whose fill tells good, so-so, bad or neither, and the word. */
export function status(name) {
  const key = String(name ?? "").toLowerCase();
  const kind = GOOD.includes(key) ? "good" : BAD.includes(key) ? "bad" : SOSO.includes(key) ? "soso" : "none";
  return h(`span.state.${kind}`, h("span.dot", { "aria-hidden": "true" }), words(name));
}
export const tag = (text, kind = "") => h(`span.tag${kind ? `.${kind}` : ""}`, text);
export const tags = (list) => (list && list.length ? h("span.tags", list.map((one) => tag(one))) : h("span.dim", "–"));
export const code = (text) => h("code", text ?? "–");
export const bold = (text) => h("b", text);

/** A button. kind: primary, danger, quiet or none. */
export function button(label, act, { kind = "", sign, title, type = "button", ...more } = {}) {
  const node = h(`button.btn${kind ? `.${kind}` : ""}`, { type, title, ...more, onclick: act && (async (event) => {
    if (node.getAttribute("aria-busy")) return;
    const waiting = act(event);
    if (!(waiting instanceof Promise)) return;
    node.setAttribute("aria-busy", "true");
    try { await waiting; } catch (error) { failed(error); } finally { node.removeAttribute("aria-busy"); }
  }) }, sign && icon(sign), label);
  return node;
}
/** What a button is that adds something. */
export const ADD = { kind: "primary", sign: "plus" };
export const iconButton = (name, label, act) => { const node = button("", act, { kind: "icon", sign: name, title: label }); node.setAttribute("aria-label", label); return node; };

let shelf = null;
/** Say something that needs no answer. kind: good, bad or none. */
export function toast(text, kind = "good") {
  if (!shelf) { shelf = h("div.toasts", { role: "status", "aria-live": "polite", popover: "manual" }); }
  document.body.append(shelf);
  const note = h(`div.toast.${kind}`, icon(kind === "bad" ? "BLOCK" : "ALLOW"), h("span", text));
  shelf.append(note);
  // Above an open dialog, which is in the top layer as well.
  if (shelf.showPopover) { if (shelf.matches(":popover-open")) shelf.hidePopover(); shelf.showPopover(); }
  setTimeout(() => { note.remove(); if (!shelf.childElementCount && shelf.hidePopover && shelf.matches(":popover-open")) shelf.hidePopover(); }, kind === "bad" ? 9000 : 4000);
}
/** Say what went wrong and what to do. */
export function failed(error) {
  if (error.name === "AbortError") return;
  toast([error.message, error.advice].filter(Boolean).join(" "), "bad");
}

export const loading = (what = "Loading") => h("div.loading", { role: "status" }, h("span.bar", { "aria-hidden": "true" }), h("span.sr", `${what}…`));
export const empty = (text, ...more) => h("div.empty", icon("info"), h("p", text), more);
export function trouble(error, again) {
  return h("div.empty.bad", { role: "alert" }, icon("BLOCK"), h("p", error.message), error.advice && h("p.dim", error.advice),
    error.requestId && h("p.dim.small", "Request ", code(error.requestId)), again && button("Try again", again, { sign: "refresh" }));
}
/** Show what `ask` brings, drawn by `draw`; meanwhile that it loads, or why it cannot. Returns how to do so again. */
export function load(node, ask, draw) {
  const run = async () => {
    if (!node.childElementCount) fill(node, loading());
    node.setAttribute("aria-busy", "true");
    try {
      const value = await ask();
      const drawn = draw(value);
      if (drawn !== undefined) fill(node, drawn);
    } catch (error) {
      if (error.name !== "AbortError") { if (!error.status && error.status !== 0) console.error(error); fill(node, trouble(error, run)); }
    } finally { node.removeAttribute("aria-busy"); }
  };
  run();
  return run;
}

/** A part of a page with a heading. */
export const headed = (title, tools, ...children) => h("section.panel", title && h("header.panel-head", h("h2", title), h("div.tools", tools)), children);
export const panel = (title, ...children) => headed(title, null, ...children);
/** Names and values. */
export const facts = (...pairs) => h("dl.facts", pairs.filter(Boolean).map(([name, value]) => h("div", h("dt", name), h("dd", value ?? "–"))));
export const stat = (label, value, note) => h("div.stat", h("div.stat-label", label), h("div.stat-value", value), note && h("div.stat-note", note));

/** Open a dialog. kind: "" or drawer (at the side). isPane: a drawer of a list that stays in use. Returns the element; its `close` closes. Focus goes back after. */
export function dialog(title, body, { actions = [], kind = "", closed, isPane = false } = {}) {
  const before = document.activeElement;
  const id = `d${Math.round(performance.now() * 1000)}`;
  const node = h(`dialog${kind ? `.${kind}` : ""}`, { "aria-labelledby": id },
    h("header", h("h2", { id, tabindex: "-1" }, title), iconButton("close", "Close", () => node.close())),
    h("div.dialog-body", body), actions.length ? h("footer", actions) : null);
  node.addEventListener("close", () => { node.remove(); if (before && before.isConnected) before.focus({ preventScroll: true }); if (closed) closed(); });
  node.addEventListener("mousedown", (event) => { if (event.target === node) node.close(); });
  document.body.append(node);
  // Beside a list that is wide enough, a drawer leaves the list in use.
  if (kind === "drawer" && isPane && matchMedia("(min-width: 1100px)").matches) {
    node.classList.add("pane");
    document.body.classList.add("split");
    node.addEventListener("close", () => { if (!document.querySelector("dialog.pane[open]")) document.body.classList.remove("split"); });
    node.addEventListener("keydown", (event) => { if (event.key === "Escape" && !event.target.closest("dialog:modal")) node.close(); });
    node.show();
  } else node.showModal();
  (node.querySelector(".dialog-body input, .dialog-body select, .dialog-body textarea") || node.querySelector("h2")).focus();
  return node;
}
/** Ask before something that cannot be undone. act: does it. */
export function confirm(title, text, label, act) {
  const go = button(label, async () => { await act(); box.close(); }, { kind: "danger" });
  const box = dialog(title, h("p", text), { actions: [button("Cancel", () => box.close()), go] });
  return box;
}
/** Put a text where the clipboard is, and say so. */
export async function copy(text) {
  try { await navigator.clipboard.writeText(text); toast("Copied."); } catch { toast("This page cannot use the clipboard. Select the text and copy it.", "bad"); }
}
/** A text to be copied, such as a command or a new key. */
export const snippet = (text, label = "Copy") => h("div.snippet", h("pre", { tabindex: "0" }, text), button(label, () => copy(text), { sign: "copy" }));

/** Tabs: [[id, label, draw]]. chosen: id. go: called with another id. */
export function tabs(list, chosen, go) {
  const row = h("div.tabs", { role: "tablist" }, list.map(([id, label]) => h("button", {
    role: "tab", type: "button", "aria-selected": String(id === chosen), tabindex: id === chosen ? "0" : "-1", data: { id }, onclick: () => go(id) }, label)));
  row.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const all = [...row.children];
    const next = all[(all.indexOf(document.activeElement) + step + all.length) % all.length];
    next.focus();
    next.click();
  });
  return row;
}
