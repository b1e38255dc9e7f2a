// Everything that was done, by whom, from where; found, shown in full, exported.

import { query } from "../api.js";
import { fill, h, icon, time } from "../dom.js";
import { SINCE, suggested } from "../filters.js";
import { browse } from "../records.js";
import { button, code, dialog, facts, status, words } from "../ui.js";
import { changes, sentence } from "./sentences.js";

export async function draw(context, here) {
  const file = (format) => `/api/audit/export${query({ ...page.wanted(), format })}`;
  const page = browse(context, here, {
    label: "Audit events", sorted: "-time", path: "/api/audit", news: [],
    fields: [
      SINCE, { name: "search", placeholder: "req_…, agent, key, address" }, suggested("action"), suggested("actor"),
      { name: "source", options: ["", "api", "auth", "shield", "cli", "mcp", "chat"] }, { name: "resource_type", label: "Resource" }, { name: "exclude_actions", label: "Exclude", placeholder: "Actions, separated by commas" },
    ],
    none: "No event matches. Choose a longer time or clear some filters.",
    tools: (row) => button("Details", () => one(row), { kind: "small" }),
    columns: [
      { label: "Time", of: "timestamp", as: time, by: "-time" },
      { label: "Event", by: "action", wide: true, cell: sentence },
      { label: "Result", by: "outcome", low: 1, cell: (row) => (row.outcome === "success" ? h("span.dim", "Success") : status(row.outcome)) },
      { of: "source", by: "source", low: 3 },
      { label: "Address", of: "ip", as: code, low: 3 },
      { label: "Number", of: "seq", by: "-number", align: "end", low: 3 },
    ],
  });
  fill(context.tools, h("span.dim.small", "Export"), [["jsonl", "JSON lines"], ["csv", "CSV"]].map(([format, label]) => h("a.btn", { href: file(format), download: `audit.${format}`, onclick: (event) => { event.currentTarget.href = file(format); } }, icon("down"), label)));
  return page;
}

const json = (title, value) => value && Object.keys(value).length ? h("div", h("h3", title), h("pre.json", JSON.stringify(value, null, 2))) : null;

function one(row) {
  dialog(words(row.action), h("div.stack", h("p", sentence(row)), h("div.row-line", status(row.outcome), row.reason && h("span.dim", words(row.reason))),
    facts(["Time", time(row.timestamp)], ["Actor", `${row.actor} (${row.actor_type})`], ["Action", code(row.action)], ["Address", code(row.ip)], ["User agent", row.user_agent], ["Key", code(row.key_prefix)], ["Agent", row.agent], ["Direction", words(row.direction)], ["Resource", [row.resource_type, row.resource_id].filter(Boolean).join(" ") || null], ["Source", row.source], ["Request", code(row.request_id)], ["Number in the chain", row.seq], ["Instance", code(row.instance_id)]),
    changes(row), json("Details", row.details), facts(["Hash", code(row.hash)], ["Previous hash", code(row.prev_hash)])), { kind: "drawer" });
}
