// Filters of a list: their values stand in the address, a range of time holds for all pages, and names are suggested.

import { api, can } from "./api.js";
import { fill, h, minute, number, ZONE } from "./dom.js";
import { button, words } from "./ui.js";

/** The options of a filter, and the value that an address names though no option has it. */
const offered = (options, value) => (options.some((option) => (Array.isArray(option) ? option[0] : option) === value) ? options : [...options, [value, value]]);
/**
 * Filters whose values stand in the URL: [{name, label, options | type, uncounted}]. changed: called with {name: value}.
 * count({name: value}): how many rows a choice leaves. The choices say so once somebody reaches for the filters.
 */
export function filters(list, values, changed, count) {
  const form = h("form.filters", { role: "search", "aria-label": "Filters", onsubmit: (event) => event.preventDefault() }, list.filter(Boolean).map((given) => {
    const one = { label: words(given.name), ...given };
    const value = values[one.name] ?? one.value ?? "";
    const set = (event) => changed({ [one.name]: event.target.value.trim() });
    if (one.name === "since") return [h("label.filter", h("span", one.label), timeFilter(one, values, changed)), h("label.filter", h("span", "Time zone"), zoneFilter())];
    const input = one.options
      ? h("select", { name: one.name, onchange: set }, offered(one.options, value).map((option) => {
        const [key, label] = Array.isArray(option) ? option : [option, option === "" ? "Any" : words(option)];
        return h("option", { value: key, selected: key === value }, label);
      }))
      : h("input", { name: one.name, type: one.type || "search", value, placeholder: one.placeholder || "Any", onchange: set, maxlength: "200", autocomplete: "off", spellcheck: "false" });
    return h("label.filter", h("span", one.label), input, one.suggest && suggestions(input, one.suggest));
  }));
  const set = () => list.filter((one) => one && form.elements[one.name].value && form.elements[one.name].value !== one.value).length;
  const fold = button("Filters", () => fold.setAttribute("aria-expanded", String(form.classList.toggle("open"))), { sign: "menu" });
  const tell = () => { fold.lastChild.textContent = set() ? `Filters (${set()} set)` : "Filters"; };
  fold.classList.add("fold");
  fold.setAttribute("aria-expanded", "false");
  form.prepend(fold);
  form.addEventListener("change", tell);
  tell();
  if (count) counted(form, list, count);
  return form;
}
/** Write beside each choice how many rows it leaves: when somebody reaches for the filters, and after each change. */
function counted(form, list, count) {
  let ticket = 0, soon = null, at = -FRESH_MS;
  const tally = () => {
    const mine = ++ticket;
    at = performance.now();
    for (const { name, options, uncounted } of list) for (const option of options && !uncounted && name !== "since" ? form.elements[name].options : []) {
      const label = (option.dataset.label ||= option.textContent);
      count({ [name]: option.value }).then((total) => { if (mine === ticket) option.textContent = `${label} (${total === null ? "10,000+" : number(total)})`; }, () => {});
    }
  };
  for (const kind of ["pointerenter", "focusin"]) form.addEventListener(kind, () => { if (performance.now() - at > FRESH_MS) tally(); });
  form.addEventListener("change", () => { clearTimeout(soon); if (ticket) soon = setTimeout(tally, 200); });
}
const FRESH_MS = 30000;
/** What a field may be filled with: ask() returns [[value, label?]] once the field is entered. */
function suggestions(input, ask) {
  const list = h("datalist", { id: `s${Math.round(performance.now() * 1000)}-${input.name}` });
  input.setAttribute("list", list.id);
  input.addEventListener("focus", async () => fill(list, (await ask().catch(() => [])).map(([value, label]) => h("option", { value }, label))), { once: true });
  return list;
}
const TIME = "gateway.time", zone = ZONE ? " (UTC)" : "";
/** The range of time that was chosen last in this tab, for pages that are opened without one. */
export const chosenTime = () => { try { return JSON.parse(sessionStorage.getItem(TIME)) || {}; } catch { return {}; } };
const shortTime = (text) => (/^\d{4}-/.test(text || "") ? minute.format(new Date(text)) : text || "now");

/** A choice of the time zone in which this browser shows all times. */
export const zoneFilter = () => h("select", { name: "zone", "aria-label": "Time zone", onchange: (event) => { localStorage.setItem("gateway.zone", event.target.value); location.reload(); } },
  [["", "Local"], ["UTC", "UTC"]].map(([value, label]) => h("option", { value, selected: value === (ZONE || "") }, label)));

/** A choice of a time: a range that ends now, or from one time to another. */
export function timeFilter(one, values, changed) {
  const node = h("select", { name: "since", "aria-label": "Time range" });
  let { since = one.value ?? "", until = "" } = values;
  const draw = () => {
    const own = until || (since && !one.options.some(([key]) => key === since)) ? [["own", `${shortTime(since)} to ${shortTime(until)}`]] : [];
    fill(node, [...one.options, ...own, ["pick", "From … to …"]].map(([key, label]) => h("option", { value: key, selected: own.length ? key === "own" : key === since }, label)));
  };
  const set = (from, to) => {
    [since, until] = [from, to];
    sessionStorage.setItem(TIME, JSON.stringify({ ...(since && { since }), ...(until && { until }) }));
    draw();
    changed({ since, until });
  };
  node.addEventListener("change", async () => {
    if (node.value !== "pick") { if (node.value !== "own") set(node.value, ""); return; }
    draw();
    const { formDialog } = await import("./form.js");
    formDialog("Choose a time", [{ name: "since", label: `From${zone}`, type: "datetime", required: true, value: since }, { name: "until", label: `To${zone}`, type: "datetime", value: until, hint: "Empty: until now." }], async (chosen) => {
      if (chosen.until && chosen.until <= chosen.since) throw Object.assign(new Error("The end must be after the beginning."), { param: "until" });
      set(chosen.since, chosen.until || "");
    }, { label: "Choose" });
  });
  node.set = set;
  draw();
  return node;
}

export const RANGES = [["1h", "Last hour"], ["24h", "Last 24 hours"], ["7d", "Last 7 days"], ["30d", "Last 30 days"]];
export const SINCE = { name: "since", label: "Time", options: [["", "Any"], ...RANGES] };

/** What a filter can be filled with: the permission to ask, the list, and of a row the value and its label. */
const SOURCES = {
  agent: ["agents:read", "/api/agents", (row) => [row.name]],
  key: ["api_keys:read", "/api/config/api-keys", (row) => [row.prefix, row.name]],
  rule: ["shield:read", "/api/shield/rules", (row) => [row.id, row.name]],
  model: ["agents:read", "/api/agents", (row) => [row.model]],
  provider: ["providers:read", "/api/providers", (row) => [row.name]],
  action: ["audit:read", "/api/audit", (row) => [row.action]],
  actor: ["audit:read", "/api/audit", (row) => [row.actor]],
};
const MOST = 300;

/** Return a filter of a page whose field suggests names. name: of the filter and, without `source`, of what it is filled with. */
export const suggested = (name, { source = name, ...more } = {}) => ({ name, ...more, suggest: async () => {
  const [needs, path, take] = SOURCES[source];
  return can(needs) ? [...new Map((await api.all(path, {}, undefined, MOST)).map(take).filter(([value]) => value).map((one) => [one[0], one])).values()] : [];
} });
