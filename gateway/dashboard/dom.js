// Elements, icons, numbers and times. Text enters the page here, as text nodes alone: what anybody wrote stays inert.

const SVG = "http://www.w3.org/2000/svg";

/** Set the properties of an element, of which those named on… are listeners, and add children. */
export function put(node, props, children = []) {
  for (const [name, value] of Object.entries(props || {})) {
    if (isNone(value) || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.setAttribute("class", [node.getAttribute("class"), value].filter(Boolean).join(" "));
    else if (name === "value") node.value = value;
    else if (name === "data") Object.assign(node.dataset, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  add(node, children);
  return node;
}

function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (isNone(child) || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Make an element: h("div.card", {title}, "text", child). Properties named on… are listeners. */
export function h(tag, props, ...children) {
  const [name, ...classes] = tag.split(".");
  const node = document.createElement(name);
  if (classes.length) node.className = classes.join(" ");
  const given = props && (props.constructor === Object) ? props : null;
  return put(node, given, given || isNone(props) ? children : [props, ...children]);
}

/** Make an SVG element, as `h` does. */
export function s(tag, props, ...children) {
  return put(document.createElementNS(SVG, tag), props, children);
}

/** Replace all that is in `node`. */
export function fill(node, ...children) {
  node.replaceChildren();
  add(node, children);
  return node;
}

const ICONS = {
  overview: "M2 10a6 6 0 1 1 12 0M8 10l3-3.5M3.5 13h9",
  traffic: "M1.5 8h3l2-5 3 10 2-5h3",
  alerts: "M8 2a4 4 0 0 0-4 4v3l-1.5 2.5h11L12 9V6a4 4 0 0 0-4-4zM6.5 13.5a1.6 1.6 0 0 0 3 0",
  incidents: "M8 1.5v4M8 14.5v-4M1.5 8h4M14.5 8h-4M8 4.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7z",
  shield: "M8 1.5 2.5 3.5V8c0 3.3 2.3 5.4 5.5 6.5 3.2-1.1 5.5-3.2 5.5-6.5V3.5z",
  keys: "M9.5 9.5a3.5 3.5 0 1 0-3-3L2 11v3h3v-2h2v-2zM11 5h.01",
  agents: "M4 6h8v6H4zM8 6V3M6.5 9h.01M9.5 9h.01M2 8v2M14 8v2",
  posture: "M3 2.5h10v11H3zM5.5 6l1 1 2-2M5.5 10.5l1 1 2-2M10.5 6.5h1M10.5 11h1",
  cost: "M8 1.5v13M11 4.5C10.5 3.5 9.5 3 8 3 6.3 3 5 4 5 5.3 5 8.5 11 7 11 10.5 11 12 9.7 13 8 13c-1.6 0-2.8-.7-3.3-1.8",
  audit: "M4 1.5h5.5L13 5v9.5H4zM9.5 1.5V5H13M6 8h5M6 11h5",
  settings: "M8 5.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5zM8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M12.6 3.4l-1.4 1.4M4.8 11.2l-1.4 1.4",
  menu: "M2 4h12M2 8h12M2 12h12", close: "M3.5 3.5l9 9M12.5 3.5l-9 9", search: "M7 2a5 5 0 1 0 0 10A5 5 0 0 0 7 2zM10.7 10.7 14 14",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  help: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM6 6.3C6 5 6.8 4.3 8 4.3s2 .8 2 1.8c0 1.5-2 1.6-2 3M8 11.5h.01",
  user: "M8 2a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM2.5 14c.5-3 2.7-4.5 5.5-4.5s5 1.5 5.5 4.5", out: "M6 2.5H3v11h3M10.5 5l3 3-3 3M13 8H6.5",
  check: "M3 8.5l3.5 3.5L13 4.5", copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3", down: "M8 2v9M4 7.5 8 11.5l4-4M3 14h10", plus: "M8 3v10M3 8h10",
  next: "M6 3l5 5-5 5", back: "M10 3 5 8l5 5", refresh: "M13 8a5 5 0 1 1-1.5-3.5M13 2v3h-3", print: "M4 6V2h8v4M4 11H2V6h12v5h-2M4 9.5h8v5H4z",
  info: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM8 7.5v4M8 5h.01", lock: "M3.5 7h9v7h-9zM5.5 7V4.5a2.5 2.5 0 0 1 5 0V7",
};
// Filled, and each of another outline, so that none needs its colour to be told apart.
const SHAPES = {
  critical: "M8 .8 15.2 8 8 15.2.8 8z", high: "M8 1.5 15.3 14H.7z", medium: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2z",
  low: "M8 2.5A5.5 5.5 0 1 0 8 13.5 5.5 5.5 0 0 0 8 2.5zm0 2.2A3.3 3.3 0 1 1 8 11.3 3.3 3.3 0 0 1 8 4.7z",
  BLOCK: "M5 1h6l4 4v6l-4 4H5l-4-4V5zM4.5 6.9v2.2h7V6.9z", REVIEW: "M8 1.5 15.3 14H.7zM7.2 6v4h1.6V6zm0 5v1.6h1.6V11z",
  ALLOW: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zM7 11.2 3.8 8l1.2-1.2 2 2 4-4L12.2 6z",
};

/** Draw an icon by name; it says nothing to a screen reader, so a label must stand beside it. */
export function icon(name, extra = "") {
  const shape = SHAPES[name];
  return s("svg", { class: `i ${shape ? "solid" : ""} ${extra}`, viewBox: "0 0 16 16", "aria-hidden": "true", focusable: "false" },
    s("path", { d: shape || ICONS[name] || ICONS.info, "fill-rule": "evenodd" }));
}

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
/** Whether there is no value. */
export const isNone = (value) => value === null || value === undefined;
/** A value of any kind in words. */
export const plain = (value) => {
  if (isNone(value) || value === "") return "–";
  if (Array.isArray(value) && value.every((one) => typeof one !== "object")) return value.join(", ") || "–";
  return typeof value === "boolean" ? (value ? "yes" : "no") : typeof value === "object" ? JSON.stringify(value) : String(value);
};
export const number = (value) => (isNone(value) ? "–" : whole.format(value));
export const compact = (value) => (isNone(value) ? "–" : Math.abs(value) < 10000 ? whole.format(Math.round(value * 10) / 10) : short.format(value));
export const percent = (part, digits = 1) => (isNone(part) ? "–" : `${(part * 100).toFixed(digits)} %`);
export const dollars = (value) => (isNone(value) ? "–" : `$${value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: value && Math.abs(value) < 1 ? 4 : 2 })}`);
export const microusd = (value) => dollars(isNone(value) ? value : value / 1e6);
export const millis = (value) => (isNone(value) ? "–" : value < 10 ? `${value.toFixed(2)} ms` : value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(1)} s`);
export function bytes(value) {
  if (isNone(value)) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = value, unit = 0;
  while (size >= 1000 && unit < units.length - 1) { size /= 1000; unit += 1; }
  return `${unit && size < 100 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}
export function span(seconds) {
  if (isNone(seconds)) return "–";
  const parts = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  for (const [unit, size] of parts) if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  return "0 s";
}

/** The time zone that somebody chose to see times in: UTC, or none for that of the computer. */
export const ZONE = localStorage.getItem("gateway.zone") || undefined;
const DAY = { month: "short", day: "numeric" }, HOUR = { hour: "2-digit", minute: "2-digit" }, SECOND = { ...HOUR, second: "2-digit" };
const format = (options, timeZone) => new Intl.DateTimeFormat(undefined, { hourCycle: "h23", timeZone, ...options });
export const day = format(DAY, ZONE), hour = format(HOUR, ZONE), minute = format({ ...DAY, ...HOUR }, ZONE);
const today = format(SECOND, ZONE), clock = format({ ...DAY, ...SECOND }, ZONE), here = format({ ...DAY, ...SECOND });
const both = (date) => { const text = date.toISOString(); return { datetime: text, title: `${here.format(date)} here\n${text.replace("T", " ").slice(0, 19)} UTC` }; };

/** Show a time as it is here or in UTC, with both on hover. null: `missing`. */
export function time(text, missing = "–") {
  if (!text) return h("span.dim", missing);
  const date = new Date(text);
  return h("time", both(date), day.format(date) === day.format(new Date()) && Date.now() - date < 86400000 ? today.format(date) : clock.format(date));
}
/** Show how long ago, or in how long, a time is; the time itself on hover. */
export function ago(text, missing = "never") {
  if (!text) return h("span.dim", missing);
  const date = new Date(text);
  const seconds = (Date.now() - date.getTime()) / 1000;
  const told = Math.abs(seconds) < 5 ? "now" : seconds < 0 ? `in ${span(-seconds)}` : `${span(seconds)} ago`;
  return h("time", both(date), told);
}
