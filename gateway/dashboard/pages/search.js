// The search over everything: pages, requests, keys, agents, rules, and what an id names.

import { api } from "../api.js";
import { fill, h, icon } from "../dom.js";
import { dialog } from "../ui.js";

const IDS = { req: "traffic", trf: "traffic", alr: "alerts", inc: "incidents", key: "keys", agt: "agents" };
const MOST = 5;

/** Open the search. pages: those that may be opened. */
export function searchDialog(pages, { can, link }) {
  const input = h("input", { type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "found", "aria-label": "Search", placeholder: "Request id, key, agent, rule, page", autocomplete: "off", spellcheck: "false" });
  const list = h("ul.found", { id: "found", role: "listbox", "aria-label": "Results" }), asking = {};
  const once = (path, ask) => (asking[path] ||= ask().catch(() => []));
  const newest = (path, text) => api.page(path, { search: text, limit: MOST }).then((page) => page.items, () => []);
  const mayOpen = (id) => pages.some((one) => one.id === id);
  let place = 0, ticket = 0, soon = null;

  const places = [...pages.map((one) => [one.label, link(one.id), one.id]), ...pages.flatMap((page) => (page.parts || []).filter(([,, needs]) => can(needs)).map(([id, label]) => [label, link(page.id, [id]), page.id]))]
    .map(([label, href, sign]) => ({ kind: "Page", label, href, sign }));

  /** The results for a text: [{kind, label, note, href, sign}]. */
  async function results(text) {
    const low = text.toLowerCase(), has = (...fields) => fields.some((one) => String(one || "").toLowerCase().includes(low));
    const prefix = IDS[/^([a-z]{3})_[0-9a-z]{10,}$/i.exec(text)?.[1]?.toLowerCase()];
    const [keys, agents, rules, requests] = await Promise.all([
      mayOpen("keys") ? once("keys", () => api.all("/api/config/api-keys")) : [],
      mayOpen("agents") ? newest("/api/agents", text) : [],
      can("shield:read") ? once("rules", () => api.all("/api/shield/rules")) : [],
      mayOpen("traffic") && text.length > 5 && !prefix ? newest("/api/traffic", text) : [],
    ]);
    return [
      prefix && mayOpen(prefix) ? { kind: "Open", label: text, href: link(prefix, [text]), sign: prefix } : [],
      places.filter(({ label }) => has(label)).slice(0, MOST),
      keys.filter((one) => has(one.name, one.prefix)).slice(0, MOST).map((one) => ({ kind: "Key", label: one.name, note: one.prefix, href: link("keys", [one.id]), sign: "keys" })),
      agents.map((one) => ({ kind: "Agent", label: one.name, note: one.owner, href: link("agents", [one.id]), sign: "agents" })),
      rules.filter((one) => has(one.id, one.name)).slice(0, MOST).map((one) => ({ kind: "Rule", label: one.name, note: one.id, href: link("shield", ["rules", one.id]), sign: "shield" })),
      requests.map((one) => ({ kind: "Request", label: one.request_id, note: [one.verdict, one.agent].filter(Boolean).join(", "), href: link("traffic", [one.request_id]), sign: "traffic" })),
    ].flat();
  }

  function choose(index) {
    const all = [...list.querySelectorAll("[role=option]")];
    place = Math.max(0, Math.min(index, all.length - 1));
    all.forEach((one, at) => one.setAttribute("aria-selected", String(at === place)));
    if (all[place]) { input.setAttribute("aria-activedescendant", all[place].id); all[place].scrollIntoView({ block: "nearest" }); }
  }

  async function search() {
    const mine = ++ticket, text = input.value.trim();
    const found = text ? await results(text) : places;
    if (mine !== ticket) return;
    fill(list, found.map((one, index) => h("li", { role: "option", id: `found-${index}` }, h("a.row-line", { href: one.href, tabindex: "-1", onclick: () => box.close() }, icon(one.sign), h("span.grow.cut", one.label, one.note && h("span.dim", ` ${one.note}`)), h("span.dim.small", one.kind)))),
      !found.length && h("li.dim", "Nothing found. Requests and Audit search in more fields."));
    choose(0);
  }

  input.addEventListener("input", () => { clearTimeout(soon); soon = setTimeout(search, 150); });
  input.addEventListener("keydown", (event) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move) { event.preventDefault(); choose(place + move); }
    else if (event.key === "Enter") { event.preventDefault(); list.querySelector("[aria-selected=true] a")?.click(); }
  });
  const box = dialog("Search", h("div.stack", input, list));
  search();
}
