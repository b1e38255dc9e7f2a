// What the top bar says of this gateway: sample data, whether it blocks, and the time zone.

import { api, can } from "./api.js";
import { h, ZONE } from "./dom.js";

/** The chips; those that the gateway is asked for come once it has answered. */
export function chips(link) {
  const node = h("span.row-line", ZONE && h("span.tag.spare", ZONE));
  const show = ({ origin, shield_mode, version }) => node.append(
    origin === "demo" ? h("span.tag.accent", { title: "Sample data" }, "DEMO") : "",
    h("a.chip", { href: link("settings", ["options"], { search: "shield_mode" }), title: `A BLOCK verdict ${shield_mode === "block" ? "refuses the request" : "is only recorded"}, unless the policy of a key says otherwise. Version ${version}.` }, shield_mode === "block" ? "Blocking" : "Observing"));
  if (can("settings:read")) api.get("/api/about").then(show, () => {});
  return node;
}
