// The sign-in page, and the dialog in which one changes one's own password.

import { api, keepSession, session } from "../api.js";
import { fill, h, icon } from "../dom.js";
import { form, formDialog } from "../form.js";

/** Show the sign-in page in `root`; call `begin` when somebody is signed in, and `changePassword` if others know the password. */
export function draw(root, begin, changePassword) {
  const node = form([
    { name: "username", label: "Name", required: true, value: "" },
    { name: "password", type: "password", auto: "current-password", required: true },
  ], async (values) => {
    const data = await api.post("/api/auth/login", values);
    keepSession(data);
    await begin();
    if (data.is_first_password) changePassword("Others may have seen this password. Choose your own now, or later in the menu under your name.");
  }, { label: "Sign in" });
  node.querySelector("[name=username]").setAttribute("autocomplete", "username");
  fill(root, h("main.sign-in", h("div.sign-in-box", h("div.sign-in-brand", icon("shield"), h("h1", "Sign in to the gateway")), node,
    h("p.dim.small", "The first start printed a name and password, or wrote them to ", h("code", "first-credentials.txt"), " in the data folder."))));
  node.querySelector("input").focus();
}

/** Ask for the old password and a new one. changed: called when it is changed. */
export function passwordDialog(intro, changed) {
  formDialog("Change password", [
    { name: "current_password", type: "password", auto: "current-password", required: true },
    { name: "new_password", type: "password", auto: "new-password", required: true, hint: "At least 8 characters, preferably 16. A few words are easier to remember than symbols." },
    { name: "again", label: "New password again", type: "password", auto: "new-password", required: true },
  ], async ({ again, ...values }) => {
    if (again !== values.new_password) throw Object.assign(new Error("The two new passwords differ."), { param: "again" });
    const done = await api.post("/api/auth/password", values);
    session.isFirstPassword = false;
    return done;
  }, { label: "Change password", intro, done: changed, told: (done) => (done.sessions_ended ? `Password changed. ${done.sessions_ended} other sessions ended.` : "Password changed.") });
}
