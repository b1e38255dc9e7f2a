// Details at the side of a list: which one stands in the address, so that it can be linked to.

import { dialog } from "../ui.js";

/**
 * Return `show(here)`, which opens what the address names, and closes what it does not name any more.
 * open(id): {title, body}. path: of the list.
 */
export function detail(context, path, open) {
  let box = null, shown = null;
  const close = () => { shown = null; if (box) { const node = box; box = null; node.close(); } };
  context.signal.addEventListener("abort", close);
  return function show(here) {
    const id = here.rest[0];
    if (id === shown) return;
    close();
    if (!id) return;
    shown = id;
    const { title, body } = open(id);
    const closed = () => {
      if (shown !== id) return;
      shown = null; box = null;
      const now = context.place();
      // Told later than it is closed: the reader may be elsewhere by then.
      if (now.id === path[0] && now.rest.at(-1) === id) history.replaceState(null, "", context.link(path[0], path.slice(1), now.query));
    };
    box = dialog(title, body, { kind: "drawer", closed, isPane: true });
    box.querySelector("h2").focus();
    const row = [...document.querySelectorAll("a.row")].find((one) => one.getAttribute("href") === location.hash)?.closest("tr");
    for (const other of document.querySelectorAll("tr.chosen")) other.classList.remove("chosen");
    row?.classList.add("chosen");
    row?.scrollIntoView({ block: "nearest" });
    return box;
  };
}
