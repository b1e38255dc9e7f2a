// Security scans: prompts, tool descriptions, settings and files that somebody points at, looked through by the shield.

import { api, at } from "../api.js";
import { fill, h, number, time } from "../dom.js";
import { form } from "../form.js";
import { button, code, dialog, facts, load, severity, stat, toast, verdict, words } from "../ui.js";
import { cut, table } from "../table.js";
import { detail } from "./detail.js";

export async function draw(context, here) {
  const { main, tools, can, signal, link } = context;
  const list = table({
    label: "Security scans",
    context, sorted: "-time", path: "/api/security-scans",
    href: (row) => link("posture", ["scans", row.id], context.place().query),
    none: "No security scan yet. A scan looks for secrets and injected instructions in prompts, tool descriptions, settings and files.",
    columns: [
      { label: "Time", of: "occurred_at", as: time, by: "-time" }, { of: "verdict", as: verdict, by: "-verdict" }, { of: "score", by: "-score", align: "end" },
      { of: "scanned", as: number, low: 1 }, { of: "blocked", as: number, low: 1 }, { label: "For review", of: "reviewed", as: number, low: 2 },
      { of: "unreadable", as: number, low: 3 }, { label: "Findings", of: "detections", as: number, by: "-findings" }, { of: "started_by", as: cut, low: 2 },
    ],
  });
  const show = detail(context, ["posture", "scans"], (id) => one(id, context));
  fill(tools, can("shield:manage") && button("Scan", () => ask((made) => { list.reload(); context.go("posture", ["scans", made.id]); }), { kind: "primary" }));
  fill(main, h("section.panel", list.node));
  show(here);
  return { moved: show, press: list.press };
}

function ask(done) {
  const box = dialog("Security scan", form([
    { name: "kind", label: "Type", options: [["prompt", "A prompt"], ["tool", "A tool’s description"], ["config", "Settings"], ["file", "Another text"], ["paths", "Files or folders on the gateway’s host"]] },
    { name: "name", value: "pasted", when: (values) => values.kind !== "paths" },
    { name: "text", label: "Text, or one path per line", type: "area", rows: 10, required: true },
  ], ({ kind, name, text }) => api.post("/api/security-scans", kind === "paths" ? { paths: text.split("\n").map((line) => line.trim()).filter(Boolean) } : { items: [{ name: name || "pasted", kind, text }] }), { label: "Scan", cancel: () => box.close(), done: (made) => { box.close(); toast("The scan is done."); done(made); } }));
}

function one(id, context) {
  const body = h("div.stack");
  load(body, () => api.get(at("security-scans", id), {}, context.signal), (scan) => [
    h("div.row-line", verdict(scan.verdict), h("b", `Score ${scan.score}`)),
    h("div.stats", stat("Scanned", number(scan.scanned)), stat("Blocked", number(scan.blocked)), stat("For review", number(scan.reviewed)), stat("Findings", number(scan.detections))),
    facts(["Time", time(scan.occurred_at)], ["Started by", scan.started_by], scan.unreadable > 0 && ["Unreadable", number(scan.unreadable)]),
    h("div", h("h3", "Scanned texts"), scan.items.map((item) => h("details.more", { open: scan.items.length < 4 && item.detections?.length > 0 }, h("summary", code(item.name), " ", item.kind && h("span.dim", words(item.kind)), " ", item.verdict ? verdict(item.verdict) : h("span.dim", item.error || "unreadable")),
      item.detections?.length ? h("ul.list", item.detections.map((each) => h("li", severity(each.severity), h("span.grow", h("a", { href: context.link("shield", ["rules", each.rule]) }, each.name || each.rule), h("span.dim", each.line ? ` line ${each.line}` : ` at ${each.start}–${each.end}`))))) : h("p.dim", "Nothing found.")))),
  ]);
  return { title: "Security scan", body };
}
