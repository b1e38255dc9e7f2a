// The documents about a page, and what the keys of the keyboard do.

import { h } from "../dom.js";
import { dialog } from "../ui.js";

/** By page of the dashboard, the document about it. */
const ABOUT = { overview: "start/tour", traffic: "observe/traffic", alerts: "observe/alerts", incidents: "howto/investigate-a-leak", shield: "trust/shield", keys: "howto/rotate-keys", agents: "observe/traffic", fleet: "observe/fleet", posture: "trust/evidence", cost: "howto/budgets", audit: "trust/evidence", settings: "howto/providers" };
const OTHERS = [["start/concepts", "Concepts"], ["howto/false-positive", "Correct a false positive"], ["howto/investigate-a-leak", "Investigate a leak"], ["troubleshooting", "Troubleshooting"]];
const KEYS = [["?", "This help"], ["g", "Then a letter: open a page"], ["/", "Search"], ["f", "Go to the first filter"], ["j  k", "Next, previous row"], ["Enter", "Open the row"], ["a", "Alerts: acknowledge"], ["r", "Alerts: resolve"], ["Esc", "Close the dialog or panel"]];

const link = (path, label) => h("li", h("a", { href: `/docs/${path}`, target: "_blank", rel: "noopener" }, label));

/** Link documents, those about the page `here` first, and list the keys and the letters of the pages that may be opened. */
export const helpDialog = (pages, here) => dialog("Help", [
  h("ul", ABOUT[here] && link(`${ABOUT[here]}.md`, "About this page"), OTHERS.map(([path, label]) => link(`${path}.md`, label)), link("", "All documents")),
  h("div.columns",
    h("dl.keys", KEYS.map(([key, text]) => h("div", h("dt", key.split("  ").map((one) => h("kbd", one))), h("dd", text)))),
    h("dl.keys", pages.map((one) => h("div", h("dt", h("kbd", "g"), h("kbd", one.key)), h("dd", one.label))))),
]);
