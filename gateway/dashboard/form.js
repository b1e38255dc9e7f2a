// Forms made of descriptions of their fields. What the gateway refuses is told at the field that it names.

import { h, fill, ZONE } from "./dom.js";
import { button, dialog, failed, toast, words } from "./ui.js";

let count = 0;

/**
 * Make a form.
 * fields: [{name, label, type, hint, value, options, required, placeholder, min, max, when}]; a label is the name in words
 * if none is given, a value that of the record `of`, a type select if there are options. A hidden field is not sent. type: text, password,
 * number, select, checks, switch, area, list (words with commas), expiry, or a {node, value()} of one's own as `own`.
 * send(values): what to do with them; an error with `param` is told at that field.
 */
export function form(fields, send, { label = "Save", cancel, kind = "primary", done, of } = {}) {
  const parts = fields.filter(Boolean).map((one) => part({ label: words(one.name), value: of?.[one.name], type: one.options ? "select" : "text", ...one }));
  const trouble = h("div.form-error", { role: "alert" });
  const submit = button(label, null, { kind, type: "submit" });
  const node = h("form.form", { novalidate: true }, parts.map((one) => one.node), trouble, h("div.form-end", cancel && button("Cancel", cancel), submit));

  node.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (submit.getAttribute("aria-busy")) return;
    fill(trouble);
    parts.forEach((one) => one.say(""));
    // A number that stands there is not taken away by an empty field, so an empty field must not look saved.
    const missing = parts.find((one) => (one.field.required || (one.field.type === "number" && !isBlank(one.field.value))) && !one.node.hidden && isBlank(one.value()));
    if (missing) { missing.say(`${missing.field.label} is required.`); missing.focus(); return; }
    const values = {};
    for (const one of parts) { const value = one.value(); if (value !== undefined && !one.node.hidden) values[one.field.name] = value; }
    submit.setAttribute("aria-busy", "true");
    try {
      const result = await send(values);
      if (done) done(result);
    } catch (error) {
      if (error.name === "AbortError") return;
      const at = parts.find((one) => error.param && (error.param === one.field.name || error.param.startsWith(`${one.field.name}.`) || error.param.startsWith(`${one.field.name}[`)));
      if (at) { at.say(error.message); at.focus(); } else fill(trouble, h("p", error.message), error.advice && h("p.small", error.advice));
    } finally { submit.removeAttribute("aria-busy"); }
  });
  node.values = () => Object.fromEntries(parts.map((one) => [one.field.name, one.value()]));
  node.field = (name) => parts.find((one) => one.field.name === name);
  const change = () => parts.forEach((one) => { if (one.field.when) one.node.hidden = !one.field.when(node.values()); });
  node.addEventListener("change", change);
  change();
  return node;
}

const isBlank = (value) => value === undefined || value === null || value === "" || (Array.isArray(value) && !value.length);

function part(field) {
  const id = `f${++count}`;
  const hint = field.hint && h("p.hint", { id: `${id}h` }, field.hint);
  const error = h("p.field-error", { id: `${id}e` });
  const about = { "aria-describedby": [hint && `${id}h`, `${id}e`].filter(Boolean).join(" ") };
  const made = (MAKERS[field.type || "text"] || MAKERS.text)(field, id, about);
  const isGroup = ["checks", "own"].includes(field.type);
  const node = isGroup
    ? h("fieldset.field", { ...about }, h("legend", field.label), hint, made.node, error)
    : field.type === "switch"
      ? h("div.field", h("label.switch", made.node, h("span", field.label)), hint, error)
      : h("div.field", h("label", { for: id }, field.label, field.required || ["select", "number", "expiry"].includes(field.type) ? "" : h("span.dim", " optional")), made.node, hint, error);
  return {
    field, node, value: made.value,
    focus: () => (made.input || node.querySelector("input,select,textarea") || node).focus(),
    say(text) { fill(error, text); node.classList.toggle("wrong", Boolean(text)); for (const one of node.querySelectorAll("input,select,textarea")) one.setAttribute("aria-invalid", text ? "true" : "false"); },
  };
}

const EXPIRIES = [["", "Never"], ["1", "In 1 day"], ["7", "In 7 days"], ["30", "In 30 days"], ["90", "In 90 days"], ["365", "In a year"]];
const soon = (days) => new Date(Date.now() + Number(days) * 86400000).toISOString();

const MAKERS = {
  text: (field, id, about) => input(field, id, about, {}),
  password: (field, id, about) => input(field, id, about, { type: "password", autocomplete: field.auto || "off" }, (text) => text),
  number: (field, id, about) => input(field, id, about, { type: "number", inputmode: "decimal", min: field.min, max: field.max, step: field.step || 1 }, (text) => (text === "" ? undefined : Number(text))),
  list: (field, id, about) => input({ ...field, value: (field.value || []).join(", ") }, id, about, {}, (text) => text.split(",").map((one) => one.trim()).filter(Boolean)),
  area(field, id, about) {
    const node = h("textarea", { id, name: field.name, rows: field.rows || 4, placeholder: field.placeholder, value: field.value ?? "", spellcheck: "false", ...about });
    return { node, value: () => node.value };
  },
  select(field, id, about) {
    const node = h("select", { id, name: field.name, ...about }, field.options.map((option) => {
      const [key, label] = Array.isArray(option) ? option : [option, words(option)];
      return h("option", { value: key ?? "", selected: key === (field.value ?? field.options[0]?.[0]) || key === field.value }, label);
    }));
    return { node, value: () => (node.value === "" ? field.blank : node.value) };
  },
  datetime(field, id, about) {
    const local = (text) => { const date = new Date(text); return new Date(date - (ZONE ? 0 : date.getTimezoneOffset() * 60000)).toISOString().slice(0, 16); };
    const node = h("input", { id, name: field.name, type: "datetime-local", value: /^\d{4}-/.test(field.value || "") ? local(field.value) : "", ...about });
    return { node, input: node, value: () => (node.value ? new Date(node.value + (ZONE ? "Z" : "")).toISOString() : undefined) };
  },
  expiry(field, id, about) {
    const options = field.most ? EXPIRIES.filter(([days]) => days && Number(days) <= field.most) : EXPIRIES;
    const kept = field.value ? [["keep", `Current: ${new Date(field.value).toLocaleDateString(undefined, { timeZone: ZONE })}`]] : [];
    const made = MAKERS.select({ ...field, options: [...kept, ...options], value: field.value ? "keep" : String(field.days ?? options[0][0]) }, id, about);
    return { node: made.node, value: () => { const days = made.node.value; return days === "keep" ? undefined : days ? soon(days) : field.never; } };
  },
  switch(field, id, about) {
    const node = h("input", { id, name: field.name, type: "checkbox", role: "switch", checked: Boolean(field.value), ...about });
    return { node, value: () => node.checked };
  },
  checks(field) {
    const boxes = field.options.map(([key, label, hint]) => h("label.check", h("input", { type: "checkbox", name: field.name, value: key, checked: (field.value || []).includes(key) }), h("span", h("span.check-label", label), hint && h("span.hint", hint))));
    const node = h("div.checks", boxes);
    return { node, value: () => [...node.querySelectorAll("input:checked")].map((box) => box.value) };
  },
  own: (field) => field.make(),
};

function input(field, id, about, props, read = (text) => (text.trim() === "" ? (field.value ? "" : field.blank) : text.trim())) {
  const node = h("input", { id, name: field.name, type: "text", autocomplete: "off", spellcheck: "false", placeholder: field.placeholder, maxlength: field.max_chars, value: field.value ?? "", required: field.required, ...props, ...about });
  return { node, input: node, value: () => read(node.value) };
}

/** Open a form in a dialog; it closes when `send` did what it should, and says `told`: a text, or what makes one of the
 * answer; [text, "bad"] where the answer is not all that was wished for. */
export function formDialog(title, fields, send, { label = "Save", told, intro, kind = "primary", done, of } = {}) {
  const node = form(fields, send, {
    label, kind, of, cancel: () => box.close(),
    done: (result) => { box.close(); if (told) toast(...[typeof told === "function" ? told(result) : told].flat()); if (done) { try { done(result); } catch (error) { failed(error); } } },
  });
  const box = dialog(title, [intro && h("p.intro", intro), node]);
  return box;
}
