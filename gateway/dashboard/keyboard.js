// What the keys do on every page: search, help, the way to another page, and what the page itself listens to.

/** Listen to the keyboard. pages, main, page: return the pages that may be opened, the content, and the open page. */
export function keyboard({ pages, link, search, help, main, page }) {
  let chord = -Infinity;
  document.addEventListener("keydown", (event) => {
    if (!main() || document.querySelector("dialog:modal")) return;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { event.preventDefault(); search(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input,select,textarea")) return;
    if (performance.now() - chord < 1500) {
      chord = -Infinity;
      const to = pages().find((one) => one.key === event.key);
      if (to) { event.preventDefault(); location.hash = link(to.id); return; }
    }
    if (event.key === "?") help();
    else if (event.key === "g") chord = performance.now();
    else if (event.key === "/") { event.preventDefault(); search(); }
    else if (event.key === "f") { const first = main().querySelector(".filters input, .filters select"); if (first) { event.preventDefault(); first.focus(); } }
    else if (event.key === "Escape") document.querySelector("dialog.pane[open]")?.close();
    else if (page()?.press && !main().querySelector(".table")?.contains(document.activeElement)) page().press(event);
  });
}
