// Users and what their roles may do.

import { api } from "../api.js";
import { fill, h, time } from "../dom.js";
import { formDialog } from "../form.js";
import { keep, records } from "../records.js";
import { ADD, button, confirm, panel, status, toast, words } from "../ui.js";

const ROLES = [["admin", "Administrator", "Everything, including users and settings."], ["security_manager", "Security manager", "Everything except users and settings."], ["operator", "Operator", "Keys, providers, budgets, alerts, agents and reports."], ["viewer", "Viewer", "Sees everything except users, keys and the audit log; changes nothing."], ["auditor", "Auditor", "Sees everything, makes reports; changes nothing else."]];
const role = (name) => (ROLES.find(([id]) => id === name) || [name, words(name)])[1];

export async function draw({ main, tools, can, signal, session }) {
  const body = h("section.panel"), mayAct = can("users:manage");
  const again = records(body, "users", signal, {
    none: "No users.",
    columns: [{ label: "Name", cell: (row) => h("span", h("b", row.username), row.id === session.user.id && h("span.dim", " (you)")), sort: (row) => row.username }, { label: "Role", cell: (row) => role(row.role), sort: (row) => row.role }, { of: "status", as: status }, { of: "created_at", as: time, low: 1, sort: true }],
    tools: mayAct ? (row) => { const change = (values) => keep("users", row, values), set = (values, told) => async () => { await change(values); toast(told); again(); }; return h("span",
      button("Role", () => formDialog(`Role of ${row.username}`, [{ name: "role", value: row.role, options: ROLES.map(([id, label]) => [id, label]) }], change, { told: "Role changed.", done: again })), " ",
      button("Password", () => formDialog(`New password for ${row.username}`, [{ name: "password", label: "New password", type: "password", auto: "new-password", required: true, hint: "Ends all sessions of the user." }], change, { told: "Password set.", done: again })), " ",
      row.status === "active" ? button("Disable", () => confirm(`Disable ${row.username}?`, "All sessions of the user end. Nobody can sign in with this name until you enable it.", "Disable", set({ disabled: true }, "User disabled."))) : button("Enable", set({ disabled: false }, "User enabled."))); } : null,
  });
  fill(tools, mayAct && button("New user", () => formDialog("New user", [
    { name: "username", label: "Name", required: true, max_chars: 64 }, { name: "password", label: "First password", type: "password", auto: "new-password", required: true, hint: "The user is asked to change it." }, { name: "role", value: "viewer", options: ROLES.map(([id, label, hint]) => [id, `${label}: ${hint}`]) },
  ], (values) => api.post("/api/users", values), { label: "Create user", told: "User created.", done: again }), ADD));
  fill(main, body, panel("What roles may do", h("ul.list", ROLES.map(([, label, hint]) => h("li", h("b", label), h("span.grow.dim", hint))))));
  return {};
}
