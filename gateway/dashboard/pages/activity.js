// The requests of one agent or key over time, in its pane: how many, and what the shield said of them.

import { api } from "../api.js";
import { verdicts } from "../charts.js";
import { h } from "../dom.js";
import { chosenTime, RANGES, timeFilter } from "../filters.js";
import { load } from "../ui.js";

/** Draw the requests of `whose`: {agent} or {key: its prefix}. A bar leads to its requests. more: what stands beside the link to all of them. */
export function activity({ can, go, link, signal }, whose, more) {
  if (!can("traffic:read")) return more;
  let range = { since: "24h", ...chosenTime() };
  const body = h("div.stack");
  const again = load(body, () => api.get("/api/traffic/summary", { ...range, ...whose }, signal), (sum) => [
    verdicts(sum, { label: "Requests", height: 140, pick: (since, until) => go("traffic", [], { since, until, ...whose }) }),
    h("div.row-line", h("a.btn", { href: link("traffic", [], { ...range, ...whose }) }, "Its requests"), more),
  ]);
  return h("div", h("div.panel-head", h("h3", "Requests over time"), h("div.tools", timeFilter({ options: RANGES }, range, (given) => { range = given; again(); }))), body);
}
