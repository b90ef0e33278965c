"use strict";
// All that the page shows comes from files that models wrote into: it becomes text nodes and
// attributes of elements made here, never markup.

const data = JSON.parse(document.getElementById("data").textContent);
const { questions, systems, runs } = data;
const OUTCOMES = { right: "✓", wrong: "✗", unscored: "?", failed: "!" };
const PAGE = 200;
const runsOf = questions.map(() => []);
runs.forEach((run) => runsOf[run.question].push(run));

const byId = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en");
const fixed = (value, digits) => (Number.isFinite(value) ? value.toFixed(digits) : "–");
const sum = (values) => values.reduce((total, value) => total + value, 0);
const mean = (values) => (values.length ? sum(values) / values.length : NaN);
const unique = (values) => [...new Set(values)];

/** A text with the characters named that are not seen, yet change how all behind them is shown. */
function plain(text) {
  const hidden = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f\u2028-\u202e\u2066-\u2069]|\p{Surrogate}/gu;
  const code = (char) => char.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
  return String(text).replace(hidden, (char) => `⟨U+${code(char)}⟩`);
}

/** An element; children are elements or texts, and what is empty is left out. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  const parts = children.flat(Infinity).filter((child) => child !== "" && child !== null);
  element.append(...parts.map((part) => (part instanceof Node ? part : plain(part))));
  return element;
}

/** Text of unknown direction and content, which changes nothing around it. */
const quoted = (tag, text, attributes = {}) => make(tag, { dir: "auto", ...attributes }, text);

/** The address of a run within the page. Half a surrogate pair cannot be part of one. */
function hashOf(run) {
  const { benchmark, id } = questions[run.question];
  const { generator, verifier, method, max_steps, max_retries } = systems[run.system];
  const parts = [benchmark, id, generator, verifier, method, String(max_steps), String(max_retries)];
  return "#" + parts.map((p) => encodeURIComponent(p.replace(/\p{Surrogate}/gu, "\ufffd"))).join("/");
}

const verifiers = unique(systems.filter((s) => s.method === "safe").map((s) => s.verifier));
const limits = unique(systems.map((system) => system.limits));
const generators = unique(systems.map((system) => system.generator));

/** What tells a system from the others of its question, its generator aside. */
function systemName(system) {
  const others = [];
  if (system.method === "safe" && verifiers.length > 1) others.push(`with ${system.verifier}`);
  if (limits.length > 1) others.push(system.limits);
  return [system.name, ...others].join(", ");
}

/** The same with the generator, where there are several. */
function fullName(system) {
  return generators.length > 1 ? `${system.generator}, ${systemName(system)}` : systemName(system);
}

function badge(worth, label) {
  const name = label === undefined ? worth : `${label}: ${worth}`;
  const shown = label === undefined ? worth : label;
  return make("span", { class: `badge ${worth}`, title: name, "aria-label": name, role: "img" },
    `${OUTCOMES[worth]} ${shown}`.trim());
}

/** Tokens of one role in words. */
function tokensText([prompt, cached, completion]) {
  return `${number(prompt)} prompt (${number(cached)} cached), ${number(completion)} completion`;
}
