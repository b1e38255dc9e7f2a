// The frame around every page: who is signed in, where one is, how one gets elsewhere. Pages are loaded when needed.

import { api, can, feed, keepSession, query, session } from "./api.js";
import { fill, h, icon } from "./dom.js";
import { keyboard } from "./keyboard.js";
import { chosenTime } from "./filters.js";
import { button, empty, failed, iconButton, loading, toast, trouble } from "./ui.js";

const PAGES = [ // group: that begins with a page. parts: of a page with tabs, the module, label and permission of each
  { id: "overview", label: "Overview", key: "o", timed: true, group: "Monitor" },
  { id: "traffic", label: "Requests", key: "t", needs: ["traffic:read"], timed: true },
  { id: "incidents", label: "Incidents", key: "i", needs: ["alerts:read"], timed: true },
  { id: "alerts", label: "Alerts", key: "a", needs: ["alerts:read"], timed: true },
  { id: "shield", label: "Protection", key: "s", group: "Protect", parts: [["playground", "Playground", "shield:read"], ["rules", "Rules", "shield:read"], ["policies", "Policies", "policies:read"], ["detectors", "Detectors", "policies:read"], ["acceptances", "Accepted risks", "risk_acceptances:read"], ["suite", "Validation suite", "shield:read"]] },
  { id: "keys", label: "Keys", key: "k", needs: ["api_keys:read"] },
  { id: "agents", label: "Agents", key: "n", needs: ["agents:read"] },
  { id: "posture", label: "Posture", key: "p", group: "Govern", parts: [["checks", "Trust audit", "posture:read"], ["scans", "Security scans", "shield:read"]] },
  { id: "cost", label: "Cost", key: "c", needs: ["budgets:read"], timed: true },
  { id: "audit", label: "Audit & reports", key: "u", timed: true, parts: [["log", "Audit log", "audit:read"], ["chain", "Hash chain", "audit:read"], ["reports", "Reports", "reports:read"]] },
  { id: "settings", label: "Settings", key: "e", parts: [["providers", "Providers", "providers:read"], ["access", "Access list", "access:read"], ["users", "Users", "users:read"], ["sessions", "Sessions", "users:read"], ["options", "Options", "settings:read"], ["outputs", "Event outputs", "settings:read"], ["fleet", "Fleet", "fleet:read"], ["about", "Connect and about", "settings:read"]] },
];
const app = document.getElementById("app");
const THEME = "gateway.theme";
let main, links, page = null, drawn = "", leave = new AbortController(), framed = new AbortController(), awaitsPage = false;

const mayOpen = ({ parts, needs = parts?.map(([,, needed]) => needed) }) => !needs || can(...needs);

/** Where one is: the page, what follows it in the path, and the filters. */
export function place() {
  const [path, search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [id, ...rest] = path.split("/").map(decode);
  return { id: id || "overview", rest, query: Object.fromEntries(new URLSearchParams(search)) };
}
const decode = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
/** Return the address of a page: link("alerts", ["alr_1"], {severity}). */
export const link = (id, rest = [], values = {}) => `#/${[id, ...rest].map(encodeURIComponent).join("/")}${query(values)}`;

const look = document.documentElement.dataset;
function otherTheme() {
  look.theme = (look.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark" ? "light" : "dark";
  localStorage.setItem(THEME, look.theme);
}

function frame() {
  const groups = [];
  links = new Map();
  let group;
  for (const one of PAGES) {
    group = one.group || group;
    if (!mayOpen(one)) continue;
    const node = h("a", { href: link(one.id) }, icon(one.id), h("span", one.label), one.id === "incidents" && h("span.count", { hidden: true }));
    links.set(one.id, node);
    if (groups.at(-1)?.name !== group) groups.push({ name: group, nodes: [] });
    groups.at(-1).nodes.push(h("li", node));
  }
  const nav = h("nav", { id: "nav", "aria-label": "Pages" }, groups.map((group) => [h("p.nav-group", { "aria-hidden": "true" }, group.name), h("ul", group.nodes)]));
  const burger = iconButton("menu", "Menu", () => { const open = document.body.classList.toggle("nav-open"); burger.setAttribute("aria-expanded", String(open)); });
  burger.classList.add("burger");
  burger.setAttribute("aria-expanded", "false");
  burger.setAttribute("aria-controls", "nav");
  const state = h("span.live", { role: "status", title: "How this page updates" });
  framed.abort();
  framed = new AbortController();
  feed.on((name, value) => { if (name === "state") showState(state, value); }, framed.signal);
  showState(state, feed.state);
  const user = h("details.menu", h("summary.btn.quiet", icon("user"), h("span.spare", session.user.username)),
    h("div.menu-list", h("p", h("b", session.user.username), h("br"), h("span.dim", session.user.role.replace("_", " "))),
      session.asksForUser && [button("Change password", () => { user.open = false; return changePassword(); }, { kind: "quiet", sign: "lock" }), button("Sign out", signOut, { kind: "quiet", sign: "out" })],
      !session.asksForUser && h("p.dim.small", "Sign-in is off (RBAC_ENABLED): anyone on this host can do everything.")));
  document.addEventListener("click", (event) => { if (!user.contains(event.target)) user.open = false; }, { signal: framed.signal });
  main = h("main", { id: "main", tabindex: "-1" });
  const told = h("span.row-line"); // after what the page itself needs
  setTimeout(async () => { told.append((await import("./chips.js")).chips(link)); }, 400);
  fill(app,
    h("button.skip", { type: "button", onclick: () => (main.querySelector("h1") || main).focus() }, "Skip to content"),
    h("header.top", burger, h("a.brand.spare", { href: "#/overview" }, icon("shield"), h("span", "Gateway")), h("span.spring"), told, state,
      button(h("span.spare", "Search"), search, { kind: "quiet", sign: "search", title: "Search (/ or Ctrl-K)" }), iconButton("sun", "Light or dark", otherTheme), iconButton("help", "Help", help), user),
    h("div.side", nav), main);
}
function showState(node, value) {
  const told = { live: ["good", "Live"], polling: ["soso", "Polling"], off: ["none", "Connecting"] }[value];
  node.className = `live state ${told[0]}`;
  fill(node, h("span.dot", { "aria-hidden": "true" }), h("span", told[1]));
}

async function signOut() {
  try { await api.post("/api/auth/logout"); } finally { location.reload(); }
}
async function changePassword(intro) {
  const { passwordDialog } = await import("./pages/signin.js");
  passwordDialog(intro, () => { page = null; route(); }); // what the page says of the password is no longer so
}

/** Show the page of the address. A page's `moved` shows another detail or part of it; other filters draw the page again. */
async function route() {
  if (place().id === "fleet") { location.replace(link("settings", ["fleet"])); return; } // its address of before
  const here = place(), isDrawn = query(here.query) === drawn;
  drawn = query(here.query);
  const known = PAGES.find((one) => one.id === here.id);
  document.body.classList.remove("nav-open");
  if (page && page.id === here.id && page.moved && (isDrawn || page.hasParts)) { page.moved(here, isDrawn); return; }
  leave.abort();
  leave = new AbortController();
  const { signal } = leave;
  page = null;
  for (const [id, node] of links) { if (id === here.id) node.setAttribute("aria-current", "page"); else node.removeAttribute("aria-current"); }
  if (!known || !mayOpen(known)) {
    head(known ? known.label : "No such page");
    main.append(empty(known ? "Your role may not see this page." : "This page does not exist.", h("a.btn", { href: "#/overview" }, "Overview")));
    return;
  }
  if (known.timed && !Object.keys(here.query).length && !here.rest.length && (drawn = query(here.query = chosenTime()))) {
    history.replaceState(null, "", link(here.id, [], here.query)); // one range of time for all pages that have one
  }
  const tools = head(known.label), body = h("div.page", loading(`Loading ${known.label}`));
  main.append(body);
  const settled = new Promise((resolve) => setTimeout(resolve, 0));
  let module;
  try { module = await import(`./pages/${known.parts ? "sections" : known.id}.js`); } catch (error) {
    if (!signal.aborted) fill(body, trouble(Object.assign(error, { message: "This page cannot be loaded.", advice: "The gateway may have been updated. Reload the page." }), () => location.reload()));
    return;
  }
  await settled;
  if (signal.aborted) return;
  const context = {
    main: body, tools, signal, place, link, can, session, parts: known.parts,
    on: (call) => feed.on((...event) => { if (!signal.aborted) call(...event); }, signal),
    /** Change filters in the address, without another entry in the history. */
    filter(values) {
      const now = place(), merged = { ...now.query, ...values };
      drawn = query(merged);
      history.replaceState(null, "", link(now.id, now.rest, merged));
      return Object.fromEntries(Object.entries(merged).filter(([, value]) => value));
    },
    go: (id, rest, values) => { location.hash = link(id, rest, values); },
    count,
    changePassword,
  };
  try {
    fill(body);
    page = { id: here.id, ...(await module.draw(context, here)) };
  } catch (error) {
    if (error.name !== "AbortError" && !signal.aborted) { console.error(error); fill(body, trouble(error, route)); }
  }
}

/** Say in the navigation how many incidents are active. */
function count(number) {
  const node = links.get("incidents")?.querySelector(".count");
  if (node) fill(Object.assign(node, { hidden: !number }), number > 99 ? "99+" : number, h("span.sr", " active"));
}

function head(title) {
  document.title = `${title} – Gateway`;
  const heading = h("h1", { tabindex: "-1" }, title);
  const tools = h("div.tools");
  fill(main, h("div.page-head", heading, tools));
  window.scrollTo(0, 0);
  if (awaitsPage) heading.focus({ preventScroll: true });
  awaitsPage = true;
  return tools;
}
const search = async () => (await import("./pages/search.js")).searchDialog(PAGES.filter(mayOpen), { can, link });
const help = async () => (await import("./pages/help.js")).helpDialog(PAGES.filter(mayOpen), place());
keyboard({ pages: () => PAGES.filter(mayOpen), link, search, help, main: () => main, page: () => page });

async function begin() {
  if (localStorage.getItem(THEME)) look.theme = localStorage.getItem(THEME);
  fill(app, loading("Loading"));
  try { keepSession(await api.get("/api/auth/session")); } catch (error) {
    if (error.status === 401) return signIn();
    return fill(app, h("div.alone", trouble(error, begin)));
  }
  session.signedOut = (error) => { if (session.user) { session.user = null; feed.stop(); toast(error.message, "bad"); signIn(); } };
  frame();
  await route();
  performance.mark("interactive");
  setTimeout(() => { if (main) feed.start(); }, 400); // after what the page itself needs
  if (can("alerts:read") && place().id !== "overview") api.page("/api/incidents", { limit: 100 }).then((found) => count(found.items.length), () => {});
}
async function signIn() {
  leave.abort();
  page = null;
  main = null;
  document.title = "Sign in – Gateway";
  for (const open of document.querySelectorAll("dialog")) open.remove();
  const { draw } = await import("./pages/signin.js");
  draw(app, begin, changePassword);
}

// A browser has six connections to a gateway, for all tabs together: only a page that is looked at holds one for news.
const attend = () => { if (!main || !session.user) return; if (document.hidden) feed.stop(); else if (feed.state === "off") { feed.start(); feed.nudge(); } };
document.addEventListener("visibilitychange", attend);
addEventListener("pagehide", () => feed.stop());
addEventListener("pageshow", attend);
addEventListener("hashchange", () => { if (main) route(); });
addEventListener("unhandledrejection", (event) => { event.preventDefault(); if (event.reason) { if (event.reason.status === undefined && event.reason.name !== "AbortError") console.error(event.reason); failed(event.reason); } });
begin();
