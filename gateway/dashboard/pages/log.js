// Everything that was done, by whom, from where; found, shown in full, exported.

import { afterNews, api, query } from "../api.js";
import { fill, h, icon, time } from "../dom.js";
import { filters, SINCE, suggested } from "../filters.js";
import { button, code, dialog, facts, status, words } from "../ui.js";
import { table } from "../table.js";
import { changes, sentence } from "./sentences.js";

export async function draw(context, here) {
  const { main, tools } = context;
  let values = here.query;
  const file = (format) => `/api/audit/export${query({ ...pick(values), format })}`;
  const links = ["jsonl", "csv"].map((format) => h("a.btn", { href: file(format), download: `audit.${format}` }, icon("down"), format === "csv" ? "CSV" : "JSON lines"));
  const list = table({
    label: "Audit events",
    context, sorted: "-time", path: "/api/audit", values: (change) => pick({ ...values, ...change }),
    none: "No event matches. Choose a longer time or clear some filters.",
    tools: (row) => button("Details", () => one(row), { kind: "small" }),
    columns: [
      { label: "Time", of: "timestamp", as: time, by: "-time" },
      { label: "Event", by: "action", wide: true, cell: (row) => sentence(row) },
      { label: "Result", by: "outcome", low: 1, cell: (row) => (row.outcome === "success" ? h("span.dim", "Success") : status(row.outcome)) },
      { of: "source", by: "source", low: 3 },
      { label: "Address", of: "ip", as: code, low: 3 },
      { label: "Number", of: "seq", by: "-number", align: "end", low: 3 },
    ],
  });
  fill(tools, h("span.dim.small", "Export"), links);
  fill(main, filters([
    SINCE, { name: "search", placeholder: "req_…, agent, key, address" }, suggested("action", "Action"), suggested("actor", "Actor"),
    { name: "source", options: ["", "api", "auth", "shield", "cli", "mcp", "chat"] }, { name: "resource_type", label: "Resource" }, { name: "exclude_actions", label: "Exclude", placeholder: "Actions, separated by commas" },
  ], values, (change) => { values = context.filter(change); links.forEach((link, index) => { link.href = file(["jsonl", "csv"][index]); }); list.restart(); }, list.count), h("section.panel", list.node));
  afterNews(context, [], () => { if (list.isFirst) list.reload(); });
  return { moved: () => {}, press: list.press };
}

const pick = ({ since, until, search, action, actor, source, resource_type, exclude_actions }) => ({ since, until, search, action, actor, source, resource_type, exclude_actions });
const json = (title, value) => value && Object.keys(value).length ? h("div", h("h3", title), h("pre.json", JSON.stringify(value, null, 2))) : null;

function one(row) {
  dialog(words(row.action), h("div.stack", h("p", sentence(row)), h("div.row-line", status(row.outcome), row.reason && h("span.dim", words(row.reason))),
    facts(["Time", time(row.timestamp)], ["Actor", `${row.actor} (${row.actor_type})`], ["Action", code(row.action)], ["Address", row.ip && code(row.ip)], ["User agent", row.user_agent], ["Key", row.key_prefix && code(row.key_prefix)], ["Agent", row.agent], ["Direction", row.direction && words(row.direction)], ["Resource", [row.resource_type, row.resource_id].filter(Boolean).join(" ") || null], ["Source", row.source], ["Request", row.request_id && code(row.request_id)], ["Number in the chain", row.seq], ["Instance", code(row.instance_id)]),
    changes(row), json("Details", row.details), facts(["Hash", code(row.hash)], ["Previous hash", code(row.prev_hash)])), { kind: "drawer" });
}
