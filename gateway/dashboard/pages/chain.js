// Whether the chain of the audit log is whole, and where it was looked at last.

import { api } from "../api.js";
import { fill, h, icon, number, plain, time } from "../dom.js";
import { button, code, load, panel, words } from "../ui.js";
import { table } from "../table.js";

export async function draw({ main, tools, signal }) {
  const body = h("div.stack");
  const again = load(body, () => api.get("/api/audit/chain", {}, signal), (chain) => [
    h(`div.banner${chain.ok ? "" : ".bad"}`, icon(chain.ok ? "ALLOW" : "BLOCK", chain.ok ? "good" : "bad"), h("span", chain.ok
      ? [h("b", "The chain is intact. "), `The gateway just checked ${number(chain.checked)} events since the newest checkpoint. The command audit verify checks all events.`]
      : [h("b", "The chain is broken. "), `${chain.reason || ""} First at event ${plain(chain.first_broken_seq)}. First copy the data folder, then compare with your exports.`])),
    list("Ends of the chains", chain.chains), list("Checkpoints", chain.checkpoints)]);
  fill(tools, button("Check again", async () => again(), { sign: "refresh" }));
  fill(main, body);
  return {};
}

const list = (title, rows) => panel(title, table({ label: title, rows, none: "None yet.", columns: Object.keys(rows[0] || {}).slice(0, 7).map((name) => ({
  label: words(name), low: name.includes("hash") ? 2 : undefined, cell: (row) => (name.endsWith("_at") ? time(row[name]) : /hash|_id$|digest/.test(name) ? code(plain(row[name]).slice(0, 30)) : plain(row[name])) })) }).node);
