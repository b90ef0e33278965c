"use strict";
// All that the page shows comes from files that models wrote into: it becomes text nodes and
// attributes of elements made here, never markup.

const data = JSON.parse(document.getElementById("data").textContent);
const { questions, systems, runs, roles } = data;
const OUTCOMES = { right: "✓", wrong: "✗", unscored: "?", failed: "!" };
const PAGE = 200;
const runsOf = questions.map(() => []);
runs.forEach((run) => {
  runsOf[run.question].push(run);
  run.cost = new Map(run.cost);
});

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
  const parts = [benchmark, id, ...systems[run.system].address];
  return "#" + parts.map((p) => encodeURIComponent(p.replace(/\p{Surrogate}/gu, "\ufffd"))).join("/");
}

/** Who answers, and what that is called. */
const answering = unique(systems.map((system) => system.answering));
const ANSWERING = unique(systems.map(({ players }) => title(players[0]?.[0] ?? "player"))).join(" / ");

/** A name with a capital. */
function title(name) {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

/** A system's name, with who answers where there are several. */
function fullName(system) {
  return answering.length > 1 ? `${system.answering}, ${system.label}` : system.label;
}

/** Calls (0), prompt (1), cached (2) or completion (3) tokens of a run: of a role, or of all. */
function cost(run, what, role) {
  const counted = role === undefined ? [...run.cost.values()] : [run.cost.get(role) ?? [0, 0, 0, 0]];
  return sum(counted.map((counts) => counts[what]));
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
