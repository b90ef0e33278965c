"use strict";
// All that the page shows comes from files that models wrote into: it becomes text nodes and
// attributes of elements made here, never markup.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en");

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
