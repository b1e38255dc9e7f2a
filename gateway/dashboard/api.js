// The one place that speaks with the gateway: requests, what went wrong and what to do about it, the live feed.

/** A request that was not answered as wished. */
export class ApiError extends Error {
  constructor(status, code, message, param, requestId, retryAfter) {
    super(message);
    Object.assign(this, { status, code, param, requestId, retryAfter });
  }
  /** What a person can do about it. */
  get advice() {
    return ADVICE[this.code] || (this.status >= 500 ? "Try again. If it persists, look for the request id in the gateway's log." : "");
  }
}

const ADVICE = {
  unreachable: "Check that the gateway runs and that this computer can reach it, then try again.",
  not_signed_in: "Sign in again.",
  csrf_failed: "Reload this page and try again.",
  permission_denied: "Your role may not do this. Ask an administrator.",
  access_denied: "The access list refuses this address or name. An administrator can change it under Settings.",
  conflict: "Someone else changed this, or it conflicts with another setting. Reload and try again.",
  not_found: "It may have been removed. Reload the list.",
  login_throttled: "Too many failed attempts. Wait before you try again.",
  overloaded: "The gateway is overloaded. Wait a moment and try again.",
  audit_unavailable: "The gateway cannot write the audit log, so nothing changed. Check the disk of the data folder.",
  shield_unavailable: "The shield could not scan, so the gateway refused the request. Try again.",
  upstream_unavailable: "The provider did not answer. Test it under Settings, Providers.",
  body_too_large: "Send a smaller request.",
};

export const session = { user: null, permissions: new Set(), csrf: null, isFirstPassword: false, asksForUser: false, signedOut: null };
export const can = (...wanted) => wanted.some((one) => session.permissions.has(one));

export function keepSession(data) {
  session.user = data.user;
  session.permissions = new Set(data.permissions);
  session.csrf = data.csrf_token;
  session.asksForUser = data.csrf_token !== null;
  session.isFirstPassword = Boolean(data.is_first_password);
}

export function query(values) {
  const pairs = Object.entries(values || {}).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return pairs.length ? `?${new URLSearchParams(pairs)}` : "";
}

async function reached(answer) {
  try { return await answer; } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "The gateway cannot be reached.");
  }
}

function ask(method, path, { body, values, signal }) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET" && session.csrf) headers["X-CSRF-Token"] = session.csrf;
  return reached(fetch(path + query(values), { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body), credentials: "same-origin", redirect: "error" }));
}

/** Return the JSON value of an answer; throw what it says went wrong. */
function read(answer, text) {
  let value = null;
  try { value = JSON.parse(text); } catch { /* told below */ }
  if (answer.ok && value) return value;
  throw refused(answer, (value && value.error) || {});
}

function refused(answer, told) {
  const error = new ApiError(answer.status, told.code || "unreadable", told.message || `The gateway answered ${answer.status}.`, told.param, told.request_id, Number(answer.headers.get("retry-after")) || null);
  if (answer.status === 401 && told.code === "not_signed_in" && session.signedOut) session.signedOut(error);
  return error;
}

async function send(method, path, { bare, ...more } = {}) {
  const answer = await ask(method, path, more), text = await reached(answer.text());
  return answer.ok && bare ? { text, type: answer.headers.get("content-type") || "" } : read(answer, text);
}

/** Ask for a stream of server-sent events and call `each(value)` for every one, until "[DONE]". */
async function stream(path, { each, ...more }) {
  const answer = await ask("POST", path, more);
  if (!answer.ok) read(answer, await reached(answer.text()));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reached(reader.read());
    if (done) throw new ApiError(0, "unreachable", "The answer broke off.");
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events.filter((one) => one.startsWith("data: "))) {
      const text = event.slice(6);
      if (text === "[DONE]") return;
      const chunk = JSON.parse(text);
      if (chunk.error) throw refused(answer, chunk.error);
      each(chunk);
    }
  }
}

export const api = {
  /** Return the data of an answer. */
  get: async (path, values, signal) => (await send("GET", path, { values, signal })).data,
  /** Return a page of a list: items, the next cursor, and how many the filters leave (null where too many to count). */
  page: async (path, values, signal) => {
    const answer = await send("GET", path, { values, signal });
    return { items: answer.data, next: answer.page?.next ?? null, total: answer.page?.total ?? null };
  },
  /** Return all of a list, at most `most` items of it. */
  all: async (path, values, signal, most = 2000) => {
    const items = [];
    let cursor;
    do {
      const page = await api.page(path, { ...values, cursor }, signal);
      items.push(...page.items);
      cursor = page.next;
    } while (cursor && items.length < most);
    return items;
  },
  post: async (path, body = {}, signal) => (await send("POST", path, { body, signal })).data,
  /** Post and read a stream of server-sent events: `each` is called for every one. */
  stream,
  patch: async (path, body) => (await send("PATCH", path, { body })).data,
  remove: async (path, values) => (await send("DELETE", path, { values })).data,
  /** Return a document as text, with its type. */
  text: (path, values) => send("GET", path, { values, bare: true }),
};

/** Call half a second after the last of some events, while the page of a context is open. */
export function afterNews({ on, signal }, names, call) {
  let soon = null;
  on((name) => { if (![...names, "tick"].includes(name)) return; clearTimeout(soon); soon = setTimeout(call, 500); });
  signal.addEventListener("abort", () => clearTimeout(soon));
}

export const at = (...parts) => `/api/${parts.map((part, index) => (index % 2 ? encodeURIComponent(part) : part)).join("/")}`;

/** Save a text as a file of this computer. */
export function save(name, text, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const POLL_MS = 10000;
const listeners = new Set();
let source = null, poll = null, restart = null;

/** What happens, as it happens: {state} of the connection, and the names and data of events. Polls where it must. */
export const feed = {
  state: "off",
  /** Call `call(name, data)` for each event until the signal says stop. */
  on(call, signal) {
    listeners.add(call);
    signal.addEventListener("abort", () => listeners.delete(call), { once: true });
  },
  start() {
    feed.stop();
    source = new EventSource("/api/feed");
    source.addEventListener("hello", () => { tell("live"); clearInterval(poll); poll = null; });
    for (const name of ["traffic", "alert"]) source.addEventListener(name, (event) => emit(name, JSON.parse(event.data)));
    source.addEventListener("error", () => {
      if (!source) return;
      tell("polling");
      if (!poll) poll = setInterval(() => emit("tick", null), POLL_MS);
      if (source.readyState === EventSource.CLOSED) {
        source.close();
        clearTimeout(restart);
        restart = setTimeout(() => api.get("/api/auth/session").then(feed.start, () => {}), POLL_MS);
      }
    });
  },
  /** Let pages ask again, as after a time in which nobody looked. */
  nudge: () => emit("tick", null),
  stop() {
    clearInterval(poll);
    clearTimeout(restart);
    poll = null;
    if (source) source.close();
    source = null;
    tell("off");
  },
};

function emit(name, data) {
  for (const call of [...listeners]) call(name, data);
}

function tell(state) {
  if (feed.state === state) return;
  feed.state = state;
  emit("state", state);
}
