// What the page's parts are made of.

const { questions, systems, runs, roles } = data;
const OUTCOMES = { right: "✓", wrong: "✗", unscored: "?", failed: "!" };
/** Ways of ending in words; others go by their names. */
const ENDS = new Map([
  ["max_steps", "out of steps, then asked for the answer"],
  ["no_evidence", "evidence is missing that no search found, then asked for the answer"],
  ["withdrawn", "withdrawn: given up without an answer"],
  ["unreadable", "the reply could not be read"],
  ["unfinished", "out of turns without an answer"],
  ["no_paths", "no candidate path leads anywhere"],
  ["no_answer", "no path that was followed gave an answer"],
  ["failed", "a request failed for good"],
]);
const runsOf = questions.map(() => []);
runs.forEach((run) => {
  runsOf[run.question].push(run);
  run.cost = new Map(run.cost);
});

const fixed = (value, digits) => (Number.isFinite(value) ? value.toFixed(digits) : "–");
const sum = (values) => values.reduce((total, value) => total + value, 0);
const mean = (values) => (values.length ? sum(values) / values.length : NaN);
const unique = (values) => [...new Set(values)];

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
