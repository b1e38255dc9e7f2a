// Pages of several parts under tabs: the part stands in the address, and each is loaded when it is chosen.

import { fill, h } from "../dom.js";
import { loading, tabs, trouble } from "../ui.js";

/** Draw the tabs of a page and the chosen part. */
export async function draw(context, here) {
  const open = context.parts.filter(([,, needs]) => context.can(needs));
  const bar = h("div"), body = h("div.page");
  let chosen = null, part = null, leave = new AbortController();
  fill(context.main, bar, body);
  context.signal.addEventListener("abort", () => leave.abort());

  async function show(to, isDrawn = true) {
    const [id, label] = open.find(([each]) => each === to.rest[0]) || open[0];
    const inner = { ...to, rest: to.rest.slice(1) };
    if (chosen === id && isDrawn) { if (part?.moved) part.moved(inner); return; }
    leave.abort();
    leave = new AbortController();
    const { signal } = leave;
    const held = bar.contains(document.activeElement);
    chosen = id;
    part = null;
    const row = tabs(open, chosen, (next) => context.go(here.id, [next]));
    row.setAttribute("aria-label", "Sections");
    fill(bar, row);
    if (held) row.querySelector("[aria-selected=true]").focus();
    body.setAttribute("role", "tabpanel");
    body.setAttribute("aria-label", label);
    fill(body, loading());
    fill(context.tools);
    try {
      const module = await import(`./${id}.js`);
      if (signal.aborted) return;
      fill(body);
      part = await module.draw({ ...context, main: body, signal, on: (call) => context.on((...event) => { if (!signal.aborted) call(...event); }) }, inner);
    } catch (error) {
      if (error.name === "AbortError" || signal.aborted) return;
      console.error(error);
      fill(body, trouble(error, () => { chosen = null; show(to); }));
    }
  }
  await show(here);
  return { hasParts: true, moved: show, press: (event) => part?.press?.(event) };
}
