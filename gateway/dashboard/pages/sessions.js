// Who is signed in, from where, and how to end that. The session one uses oneself stays.

import { api, at } from "../api.js";
import { ago, fill, h, time } from "../dom.js";
import { button, code, confirm, toast } from "../ui.js";
import { browse } from "../records.js";
import { cut } from "../table.js";

export async function draw(context, here) {
  const { tools, can, session } = context;
  const mayAct = can("users:manage");
  const page = browse(context, here, {
    label: "Sessions", sorted: "-created", path: "/api/sessions", none: "Nobody is signed in.",
    columns: [{ label: "User", by: "user", cell: (row) => h("b", row.username) }, { label: "Address", of: "ip", as: code }, { label: "Browser", of: "user_agent", as: cut, wide: true, low: 2 }, { label: "Since", of: "created_at", as: time, by: "-created", low: 1 }, { of: "last_seen_at", as: ago, by: "-last_seen" }, { of: "expires_at", as: ago, by: "expires", low: 3 }],
    tools: mayAct ? (row) => button("End", async () => { await api.remove(at("sessions", row.id)); toast("Session ended."); page.reload(); }) : null,
  });
  fill(tools, mayAct && session.asksForUser && button("End my other sessions", () => confirm("End your other sessions?", "You stay signed in here.", "End them", async () => { await api.remove("/api/sessions"); toast("Your other sessions have ended."); page.reload(); })));
  return page;
}
