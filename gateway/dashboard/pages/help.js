// The documents about a page, and what the keys of the keyboard do.

import { h } from "../dom.js";
import { dialog } from "../ui.js";

/** By page of the dashboard, the document about it. */
const ABOUT = { overview: "start/tour", traffic: "observe/traffic", alerts: "observe/alerts", incidents: "howto/investigate-a-leak", shield: "trust/shield", keys: "howto/rotate-keys", agents: "observe/traffic", fleet: "observe/fleet", posture: "trust/evidence", cost: "howto/budgets", audit: "trust/evidence", settings: "howto/providers" };
const OTHERS = [["start/concepts", "Concepts"], ["howto/false-positive", "Correct a false positive"], ["howto/investigate-a-leak", "Investigate a leak"], ["troubleshooting", "Troubleshooting"]];
const KEYS = [["?", "This help"], ["g", "Then a letter: open a page"], ["/", "Search"], ["f", "Go to the first filter"], ["j  k", "Next, previous row"], ["Enter", "Open the row"], ["a", "Alerts: acknowledge"], ["r", "Alerts: resolve"], ["Esc", "Close the dialog or panel"]];

const keys = (list) => h("dl.keys", list.map(([pressed, text]) => h("div", h("dt", pressed.map((key) => h("kbd", key))), h("dd", text))));
const link = (path, label) => h("li", h("a", { href: `/docs/${path}`, target: "_blank", rel: "noopener" }, label));

/** Link documents, that about the page or tab first, and list the keys and the letters of the pages that may be opened. */
export const helpDialog = (pages, { id, rest }) => dialog("Help", [
  h("ul", link(`${ABOUT[rest[0]] || ABOUT[id]}.md`, "About this page"), OTHERS.map(([path, label]) => link(`${path}.md`, label)), link("", "All documents")),
  h("div.columns",
    keys(KEYS.map(([key, text]) => [key.split("  "), text])), keys(pages.map((one) => [["g", one.key], one.label]))),
]);
