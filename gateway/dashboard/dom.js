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
  overview: "M2 10a6 6 0 1 1 12 0M8 10l3-3.500M3.500 13h9",
  traffic: "M1.500 8h3l2-5 3 10 2-5h3",
  alerts: "M8 2a4 4 0 0 0-4 4v3l-1.500 2.500h11L12 9V6a4 4 0 0 0-4-4zM6.500 13.500a1.600 1.600 0 0 0 3 0",
  incidents: "M8 1.500v4M8 14.500v-4M1.500 8h4M14.500 8h-4M8 4.500a3.500 3.500 0 1 0 0 7 3.500 3.500 0 0 0 0-7z",
  shield: "M8 1.500 2.500 3.500V8c0 3.300 2.300 5.400 5.500 6.500 3.200-1.100 5.500-3.200 5.500-6.500V3.500z",
  keys: "M9.500 9.500a3.500 3.500 0 1 0-3-3L2 11v3h3v-2h2v-2zM11 5h.01",
  agents: "M4 6h8v6H4zM8 6V3M6.500 9h.01M9.500 9h.01M2 8v2M14 8v2",
  posture: "M3 2.500h10v11H3zM5.500 6l1 1 2-2M5.500 10.500l1 1 2-2M10.500 6.500h1M10.500 11h1",
  cost: "M8 1.500v13M11 4.500C10.500 3.500 9.500 3 8 3 6.300 3 5 4 5 5.300 5 8.500 11 7 11 10.500 11 12 9.700 13 8 13c-1.600 0-2.800-.700-3.300-1.800",
  audit: "M4 1.500h5.500L13 5v9.500H4zM9.500 1.500V5H13M6 8h5M6 11h5",
  settings: "M8 5.500a2.500 2.500 0 1 0 0 5 2.500 2.500 0 0 0 0-5zM8 1.500v2M8 12.500v2M1.500 8h2M12.500 8h2M3.400 3.400l1.400 1.400M11.200 11.200l1.400 1.400M12.600 3.400l-1.400 1.400M4.800 11.200l-1.400 1.400",
  menu: "M2 4h12M2 8h12M2 12h12", close: "M3.500 3.500l9 9M12.500 3.500l-9 9", search: "M7 2a5 5 0 1 0 0 10A5 5 0 0 0 7 2zM10.700 10.700 14 14",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1v1.500M8 13.500V15M1 8h1.500M13.500 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  help: "M8 1.500a6.500 6.500 0 1 0 0 13 6.500 6.500 0 0 0 0-13zM6 6.300C6 5 6.800 4.300 8 4.300s2 .800 2 1.800c0 1.500-2 1.600-2 3M8 11.500h.01",
  user: "M8 2a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM2.500 14c.500-3 2.700-4.500 5.500-4.500s5 1.500 5.500 4.500", out: "M6 2.500H3v11h3M10.500 5l3 3-3 3M13 8H6.500",
  check: "M3 8.500l3.500 3.500L13 4.500", copy: "M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3", down: "M8 2v9M4 7.500 8 11.500l4-4M3 14h10", plus: "M8 3v10M3 8h10",
  next: "M6 3l5 5-5 5", back: "M10 3 5 8l5 5", refresh: "M13 8a5 5 0 1 1-1.500-3.500M13 2v3h-3", print: "M4 6V2h8v4M4 11H2V6h12v5h-2M4 9.500h8v5H4z",
  info: "M8 1.500a6.500 6.500 0 1 0 0 13 6.500 6.500 0 0 0 0-13zM8 7.500v4M8 5h.01", lock: "M3.500 7h9v7h-9zM5.500 7V4.500a2.500 2.500 0 0 1 5 0V7",
};
// Filled, and each of another outline, so that none needs its colour to be told apart.
const SHAPES = {
  critical: "M8 .800 15.200 8 8 15.200.800 8z", high: "M8 1.500 15.300 14H.700z", medium: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2z",
  low: "M8 2.500A5.500 5.500 0 1 0 8 13.500 5.500 5.500 0 0 0 8 2.500zm0 2.200A3.300 3.300 0 1 1 8 11.300 3.300 3.300 0 0 1 8 4.700z",
  BLOCK: "M5 1h6l4 4v6l-4 4H5l-4-4V5zM4.500 6.900v2.200h7V6.900z", REVIEW: "M8 1.500 15.300 14H.700zM7.200 6v4h1.600V6zm0 5v1.600h1.600V11z",
  ALLOW: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zM7 11.200 3.800 8l1.200-1.200 2 2 4-4L12.200 6z",
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
