// What the keys of the keyboard do.

import { h } from "../dom.js";
import { dialog } from "../ui.js";

const KEYS = [["?", "This help"], ["g", "Then a letter: open a page"], ["/", "Search"], ["f", "Go to the first filter"], ["j  k", "Next, previous row"], ["Enter", "Open the row"], ["a", "Alerts: acknowledge"], ["r", "Alerts: resolve"], ["Esc", "Close the dialog or panel"]];

/** List the keys, and the letters of the pages that may be opened. */
export const helpDialog = (pages) => dialog("Keyboard shortcuts", h("div.columns",
  h("dl.keys", KEYS.map(([key, text]) => h("div", h("dt", key.split("  ").map((one) => h("kbd", one))), h("dd", text)))),
  h("dl.keys", pages.map((one) => h("div", h("dt", h("kbd", "g"), h("kbd", one.key)), h("dd", one.label))))));
