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
const unique = (values) => [...new Set(values)];

/** An element; children are elements or texts, and what is empty is left out. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== "" && child !== null));
  return element;
}

/** Text of unknown direction and content, which changes nothing around it. */
const quoted = (tag, text, attributes = {}) => make(tag, { dir: "auto", ...attributes }, String(text));

// ---------------------------------------------------------------- what a run is

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

function badge(worth, label) {
  const name = label === undefined ? worth : `${label}: ${worth}`;
  const shown = label === undefined ? worth : label;
  return make("span", { class: `badge ${worth}`, title: name, "aria-label": name, role: "img" },
    `${OUTCOMES[worth]} ${shown}`.trim());
}

function tokensText([prompt, cached, completion]) {
  return `${number(prompt)} prompt (${number(cached)} cached), ${number(completion)} completion`;
}

// ---------------------------------------------------------------- filters

const filters = {};
const haystacks = new Map();

/** All that the search reads of a run, in lower case. */
function haystack(run) {
  if (!haystacks.has(run)) {
    const { id, text, references } = questions[run.question];
    const said = run.attempts.flatMap((a) => [a.text, a.label, a.diagnosis, a.guidance, a.query]);
    const texts = [id, text, ...references, run.answer, ...said];
    haystacks.set(run, texts.join("\n").toLowerCase());
  }
  return haystacks.get(run);
}

const CHOICES = [
  ["benchmark", "Benchmark", unique(questions.map((q) => q.benchmark)),
    (run, value) => questions[run.question].benchmark === value],
  ["method", "Method", unique(systems.map((s) => s.method)),
    (run, value) => systems[run.system].method === value],
  ["generator", "Generator", generators, (run, value) => systems[run.system].generator === value],
  ["limits", "Limits", limits, (run, value) => systems[run.system].limits === value],
  ["error", "Error type", data.labels, (run, value) => run.attempts.some((a) => a.label === value)],
  ["outcome", "Outcome", Object.keys(OUTCOMES), (run, value) => run.worth === value],
];

const methodNames = new Map(systems.map((system) => [system.method, system.name]));

function makeFilters() {
  const bar = byId("filters");
  for (const [key, label, values, fits] of CHOICES) {
    if (key === "limits" && values.length < 2) continue;
    const select = make("select", { id: `filter-${key}` });
    select.append(new Option("all", ""));
    values.forEach((value, place) => {
      const count = runs.filter((run) => fits(run, value)).length;
      const name = key === "method" ? methodNames.get(value) : value;
      select.append(new Option(`${name} (${number(count)})`, String(place)));
    });
    select.addEventListener("change", refresh);
    bar.append(make("label", {}, label, select));
    filters[key] = (run) => select.value === "" || fits(run, values[Number(select.value)]);
  }
  const search = make("input", { id: "filter-text", type: "search", spellcheck: "false",
    placeholder: "question, answer, steps, feedback" });
  let timer;
  search.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(refresh, 120); });
  bar.append(make("label", { class: "wide" }, "Search", search));
  filters.text = (run) => {
    const wanted = search.value.trim().toLowerCase();
    return wanted === "" || haystack(run).includes(wanted);
  };
  const clear = make("button", { type: "button", id: "clear" }, "Clear");
  clear.addEventListener("click", () => {
    bar.querySelectorAll("select, input").forEach((control) => { control.value = ""; });
    refresh();
  });
  bar.append(clear);
}

// ---------------------------------------------------------------- the list

let shown = new Set();
let listed = [];
let drawn = 0;
let current = null;

function refresh() {
  const tests = Object.values(filters);
  shown = new Set(runs.filter((run) => tests.every((fits) => fits(run))));
  listed = questions.map((_, place) => place)
    .filter((place) => runsOf[place].some((run) => shown.has(run)));
  byId("list").replaceChildren();
  drawn = 0;
  drawMore();
  byId("count").textContent = shown.size === 0 ? "Nothing fits these filters."
    : `${number(shown.size)} of ${number(runs.length)} trajectories, ` +
      `${number(listed.length)} of ${number(questions.length)} questions`;
  drawTotals();
}

function drawMore() {
  const next = listed.slice(drawn, drawn + PAGE);
  byId("list").append(...next.map(row));
  drawn += next.length;
  byId("more").hidden = drawn >= listed.length;
  markCurrent();
}

function row(place) {
  const { benchmark, id, text } = questions[place];
  const badges = runsOf[place].map((run) => {
    const system = systems[run.system];
    const many = generators.length > 1 || runsOf[place].length > 4;
    const full = generators.length > 1 ? `${system.generator}, ${systemName(system)}` : systemName(system);
    const mark = badge(run.worth, full);
    if (many) mark.textContent = OUTCOMES[run.worth];
    if (!shown.has(run)) mark.classList.add("dim");
    return mark;
  });
  const link = make("a", { href: hashOf(preferred(place)) },
    quoted("span", text || id, { class: "text" }),
    make("span", { class: "meta" }, quoted("span", benchmark), " · ", quoted("span", id)),
    make("span", { class: "badges" }, badges));
  link.addEventListener("click", (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    open(preferred(place));
  });
  return make("li", { "data-place": place }, link);
}

/** The run of a question to open: that of the system in view if it fits, else the first. */
function preferred(place) {
  const fitting = runsOf[place].filter((run) => shown.has(run));
  return fitting.find((run) => current !== null && run.system === current.system) ?? fitting[0];
}

function markCurrent() {
  const list = byId("list");
  list.querySelectorAll("[aria-current]").forEach((link) => link.removeAttribute("aria-current"));
  if (current === null) return null;
  const link = list.querySelector(`li[data-place="${current.question}"] > a`);
  link?.setAttribute("aria-current", "true");
  return link;
}

/** Open the question before or behind the one in view. */
function move(by) {
  if (listed.length === 0) return;
  const at = current === null ? -1 : listed.indexOf(current.question);
  const to = at < 0 ? 0 : Math.min(Math.max(at + by, 0), listed.length - 1);
  while (drawn <= to) drawMore();
  open(preferred(listed[to]), true);
  const link = markCurrent();
  link.focus({ preventScroll: true });
  link.scrollIntoView({ block: "nearest" });
}

// ---------------------------------------------------------------- scores and costs

const COLUMNS = ["Questions", "Right", "Wrong", "Unscored", "Failed", "EM", "F1", "Acc", "Calls", "Steps"];
const TOKENS = ["Prompt", "Cached", "Completion"];

function totals(found) {
  const count = (worth) => found.filter((run) => run.worth === worth).length;
  const mean = (values) => (found.length ? sum(values) / found.length : NaN);
  const correct = found.filter((run) => run.verdict === "correct").length;
  const judged = correct + found.filter((run) => run.verdict === "incorrect").length;
  const cost = [0, 1].map((role) => [0, 1, 2, 3].map((what) => sum(found.map((r) => r.cost[role][what]))));
  const cells = [
    number(found.length),
    ...Object.keys(OUTCOMES).map((worth) => number(count(worth))),
    fixed(100 * mean(found.map((run) => run.em)), 1),
    fixed(100 * mean(found.map((run) => run.f1)), 1),
    fixed((100 * correct) / judged, 1),
    fixed(mean(found.map((run) => run.cost[0][0] + run.cost[1][0])), 1),
    fixed(mean(found.map((run) => run.steps)), 1),
  ];
  for (const [, prompt, cached, completion] of cost) {
    const share = prompt ? ` (${fixed((100 * cached) / prompt, 1)}%)` : "";
    cells.push(...(prompt + completion === 0 ? ["–", "–", "–"]
      : [number(prompt), number(cached) + share, number(completion)]));
  }
  return cells;
}

function drawTotals() {
  const cell = (text) => make("td", {}, text);
  const lines = systems.map((system, place) => {
    const found = runs.filter((run) => run.system === place && shown.has(run));
    const mark = system.simulated ? make("span", { class: "tag" }, "simulated") : "";
    return make("tr", {},
      make("th", { scope: "row" }, quoted("span", systemName(system)), " ", mark),
      quoted("td", system.generator, { class: "name" }),
      quoted("td", system.verifier || "–", { class: "name" }),
      totals(found).map(cell));
  });
  if (systems.length > 1) {
    lines.push(make("tr", { class: "all" }, make("th", { scope: "row", colspan: 3 }, "All"),
      totals([...shown]).map(cell)));
  }
  const head = (text, attributes) => make("th", { scope: "col", ...attributes }, text);
  const group = { scope: "colgroup", colspan: 3, class: "group" };
  const table = make("table", {},
    make("thead", {},
      make("tr", {}, head("Method", { rowspan: 2 }), head("Generator", { rowspan: 2 }),
        head("Verifier", { rowspan: 2 }), COLUMNS.map((name) => head(name, { rowspan: 2 })),
        head("Generator's tokens", group), head("Verifier's tokens", group)),
      make("tr", {}, [...TOKENS, ...TOKENS].map((name) => head(name)))),
    make("tbody", {}, lines));
  byId("table").replaceChildren(
    make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Scores and costs" }, table),
    make("p", { class: "meta" }, "EM, F1 and Acc in percent, over all questions alike. Calls and " +
      "steps are a question's, tokens those of all questions; “–”: none were reported."));
}

// ---------------------------------------------------------------- details

function open(run, quietly = false) {
  try {
    history[quietly ? "replaceState" : "pushState"](null, "", hashOf(run));
  } catch {
    // Some browsers allow only so many a minute; the page works without.
  }
  show(run);
}

function show(run) {
  current = run;
  const article = byId("details");
  const question = questions[run.question];
  const system = systems[run.system];
  article.replaceChildren(
    make("p", { class: "meta" }, quoted("span", question.benchmark), " · ", quoted("span", question.id)),
    quoted("h2", question.text || question.id),
    references(question),
    otherRuns(run),
    answer(run, system),
    ...passages(question, run),
    make("h3", {}, "Steps"),
    steps(run));
  markCurrent();
  if (article.getBoundingClientRect().top < 0) article.scrollIntoView();
}

function references({ references }) {
  if (references.length === 0) return "";
  const texts = references.flatMap((text, place) => [place ? " · " : "", quoted("span", text)]);
  return make("p", { class: "references" }, make("b", {}, references.length > 1 ? "References " : "Reference "), texts);
}

function otherRuns(run) {
  const lines = runsOf[run.question].map((other) => {
    const system = systems[other.system];
    const link = make("a", { href: hashOf(other), "aria-current": other === run ? "true" : undefined },
      quoted("span", systemName(system)));
    const rejected = other.attempts.filter((attempt) => !attempt.accepted).length;
    return make("tr", { class: other === run ? "chosen" : undefined },
      make("th", { scope: "row" }, link),
      generators.length > 1 ? quoted("td", system.generator, { class: "name" }) : null,
      make("td", {}, badge(other.worth)),
      quoted("td", other.answer || "–", { class: "name" }),
      make("td", {}, number(other.steps)),
      make("td", {}, number(rejected)),
      make("td", {}, number(other.cost[0][0] + other.cost[1][0])),
      make("td", {}, number(other.cost[0][1] + other.cost[1][1]) || "–"));
  });
  const heads = ["Method", ...(generators.length > 1 ? ["Generator"] : []),
    "Outcome", "Answer", "Steps", "Rejected", "Calls", "Prompt tokens"];
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "All methods on this question" },
    make("table", { class: "runs" },
      make("thead", {}, make("tr", {}, heads.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, lines)));
}

function answer(run, system) {
  const ends = { answered: "answered", max_steps: "out of steps, then asked for the answer",
    failed: "a request failed for good" };
  const facts = [
    ["Final answer", [run.answer ? quoted("strong", run.answer) : "none", " ", badge(run.worth)]],
    ["Judge", [run.judge ? quoted("span", run.judge)
      : run.verdict === null ? "none asked: right and wrong go by exact match" : run.verdict]],
    ["Scores", [`EM ${fixed(100 * run.em, 1)} · F1 ${fixed(100 * run.f1, 1)}`]],
    ["Ended", [ends[run.stop] ?? quoted("span", run.stop)]],
    ["Method", [quoted("span", systemName(system)), ` · ${system.limits}`]],
    ["Generator", [quoted("span", system.generator)]],
    ["Verifier", [system.verifier ? quoted("span", system.verifier) : "none"]],
  ];
  if (system.simulated) facts.push(["Simulated", ["an engine without a model took part"]]);
  run.cost.forEach(([calls, ...tokens], role) => {
    if (sum(tokens)) facts.push([["Generator's cost", "Verifier's cost"][role],
      [`${number(calls)} calls, ${tokensText(tokens)} tokens`]]);
  });
  return make("dl", { class: "facts" },
    facts.map(([name, parts]) => [make("dt", {}, name), make("dd", {}, parts)]).flat());
}

function passages(question, run) {
  const retrieved = run.attempts.flatMap((attempt) =>
    attempt.retrieved.map((passage) => ({ ...passage, step: attempt.step })));
  const all = [...question.passages, ...retrieved];
  if (all.length === 0) return [];
  const gold = question.passages.filter((passage) => passage.gold).length;
  const counts = [`${number(gold)} gold`, ...(retrieved.length ? [`${number(retrieved.length)} retrieved`] : [])];
  const items = all.map((passage, place) => {
    const tags = [];
    if (passage.gold) tags.push(make("span", { class: "tag gold" }, "gold"));
    if (passage.step !== undefined) {
      tags.push(make("span", { class: "tag retrieved" }, `retrieved at step ${passage.step}`));
    }
    return make("details", { id: `passage-${place + 1}`, class: "passage" },
      make("summary", {}, `Passage ${place + 1}: `, quoted("span", passage.title), " ", tags),
      quoted("p", passage.text));
  });
  const toggle = make("button", { type: "button" }, "Open all");
  toggle.addEventListener("click", () => {
    const opens = items.some((item) => !item.open);
    items.forEach((item) => { item.open = opens; });
    toggle.textContent = opens ? "Close all" : "Open all";
  });
  return [make("h3", {}, `Passages (${all.length}: ${counts.join(", ")}) `, toggle),
    make("div", { class: "passages" }, items)];
}

/** A text in which "Passage 3" opens that passage. */
function withPassages(tag, text, attributes) {
  const parts = String(text).split(/(\bPassage \d{1,4}\b)/).map((part, place) => {
    const passage = place % 2 ? byPassage(part) : null;
    if (passage === null) return part;
    const link = make("button", { type: "button", class: "reference" }, part);
    link.addEventListener("click", () => {
      const target = byId(passage);
      target.open = true;
      target.scrollIntoView({ block: "center" });
      target.querySelector("summary").focus({ preventScroll: true });
    });
    return link;
  });
  return make(tag, { dir: "auto", ...attributes }, parts);
}

function byPassage(words) {
  const place = Number(words.slice("Passage ".length));
  const own = questions[current.question].passages.length;
  const found = sum(current.attempts.map((attempt) => attempt.retrieved.length));
  return place >= 1 && place <= own + found ? `passage-${place}` : null;
}

function steps(run) {
  const groups = new Map();
  for (const attempt of run.attempts) {
    groups.set(attempt.step, [...(groups.get(attempt.step) ?? []), attempt]);
  }
  const items = [...groups].map(([step, tries]) =>
    make("li", { class: "step", "aria-label": `Step ${step}` },
      tries.map((attempt, place) => attemptCard(attempt, place + 1, tries.length))));
  if (run.stop === "failed") {
    items.push(make("li", { class: "broken" }, "Here a request failed for good, which ended the question."));
  } else if (items.length === 0) {
    items.push(make("li", { class: "broken" }, "No attempts were recorded."));
  }
  return make("ol", { class: "steps" }, items);
}

function attemptCard(attempt, place, count) {
  const head = [make("b", {}, `Step ${attempt.step}`)];
  if (count > 1) head.push(make("span", { class: "meta" }, `attempt ${place} of ${count}`));
  head.push(make("span", { class: `fate ${attempt.accepted ? "accepted" : "rejected"}` }, attempt.fate));
  if (attempt.label) head.push(quoted("span", attempt.label, { class: "label" }));
  const said = [["Diagnosis", attempt.diagnosis], ["Guidance", attempt.guidance], ["Query", attempt.query]]
    .filter(([, text]) => text !== "")
    .flatMap(([name, text]) => [make("dt", {}, name), withPassages("dd", text)]);
  if (attempt.retrieved.length) {
    const titles = attempt.retrieved.flatMap((p, at) => [at ? " · " : "", quoted("span", p.title)]);
    said.push(make("dt", {}, "Retrieved"), make("dd", {}, titles));
  }
  if (attempt.verdict) {
    said.push(make("dt", {}, "Verifier's reply"), quoted("dd", attempt.verdict, { class: "raw" }));
  }
  const costs = ["generator", "verifier"].map((role, at) => [role, attempt.tokens[at]])
    .filter(([, tokens]) => sum(tokens) > 0).map(([role, tokens]) => `${role}: ${tokensText(tokens)}`);
  return make("section", { class: `attempt ${attempt.accepted ? "accepted" : "rejected"}` },
    make("header", {}, head),
    withPassages("p", attempt.text || "(an empty reply)", { class: "said" }),
    said.length ? make("dl", { class: "feedback" }, said) : "",
    costs.length ? make("p", { class: "meta tokens" }, `Tokens · ${costs.join(" · ")}`) : "");
}

// ---------------------------------------------------------------- the page as a whole

function drawHead() {
  const simulated = systems.filter((system) => system.simulated).length;
  if (simulated) {
    const which = simulated === systems.length ? "" : `in ${simulated} of ${systems.length} systems `;
    byId("simulated").append(make("strong", {}, "Simulated."), ` An engine without a model took part ${which}` +
      "here: these traces show that the loop works, and nothing about how well a model reasons.");
    byId("simulated").hidden = false;
  }
  const notes = [];
  if (!data.has_questions) {
    notes.push("There is no questions.jsonl, so that questions go by their ids and have no passages.");
  }
  if (data.settings === null) notes.push("There is no results.json: the evaluation did not end.");
  const unjudged = runs.filter((run) => run.verdict === null && run.worth !== "failed").length;
  if (unjudged) {
    const which = unjudged === runs.length ? "No judge was asked" : `For ${number(unjudged)} trajectories no judge was asked`;
    notes.push(`${which}: right and wrong go by exact match.`);
  }
  byId("notes").append(...notes.map((note) => make("p", { class: "note" }, note)));
  if (data.settings !== null) {
    byId("settings").hidden = false;
    byId("settings").querySelector("dl").append(
      ...data.settings.flatMap(([name, value]) => [quoted("dt", name), quoted("dd", value)]));
  }
}

/** Show the run that the address names, or the first that is listed. */
function follow() {
  const wanted = location.hash;
  if (wanted === "#details") return;
  const named = wanted.length > 1 ? runs.find((run) => hashOf(run) === wanted) : undefined;
  if (named !== undefined) {
    show(named);
    const at = listed.indexOf(named.question);
    while (at >= drawn) drawMore();
    markCurrent()?.scrollIntoView({ block: "nearest" });
  } else if (wanted.length > 1) {
    current = null;
    markCurrent();
    byId("details").replaceChildren(make("p", { role: "alert" },
      "The link names no trajectory of this page. Choose a question from the list."));
  } else if (listed.length) {
    show(preferred(listed[0]));
  }
}

document.addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const at = document.activeElement;
  const free = at === document.body || byId("questions").contains(at);
  if (by === undefined || !free || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  move(by);
});
byId("more").addEventListener("click", drawMore);
new IntersectionObserver((seen) => { if (seen.some((entry) => entry.isIntersecting)) drawMore(); },
  { root: byId("questions"), rootMargin: "400px" }).observe(byId("more"));
window.addEventListener("hashchange", follow);
window.addEventListener("popstate", follow);

drawHead();
makeFilters();
refresh();
follow();
