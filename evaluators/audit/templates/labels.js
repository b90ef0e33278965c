// The page of labels: one row in view, all others in the list.

const { rows } = data;
const kinds = new Map(data.labels.map(([name, words, tone]) => [name, { words, tone }]));
const unique = (values) => [...new Set(values)];
const isNoise = ({ label }) => kinds.get(label).tone === "bad";
const badge = (label) => make("span", { class: `badge ${kinds.get(label).tone}` }, kinds.get(label).words);
let current = null;

const NOISE = "any noise";
const onPage = [...kinds.keys()].filter((name) => rows.some(({ label }) => label === name));
const CHOICES = [
  ["benchmark", "Benchmark", unique(rows.map((row) => row.benchmark)), (row, value) => row.benchmark === value],
  ["split", "Split", unique(rows.map((row) => row.split)), (row, value) => row.split === value],
  ["label", "Label", [...onPage, NOISE], (row, value) => (value === NOISE ? isNoise(row) : row.label === value),
    new Map(onPage.map((name) => [name, kinds.get(name).words]))],
];

/** All that the search reads of a row. */
function textsOf({ id, question, answers, explanation, passages, path }) {
  const facts = path.map(({ head, relation, tail }) => `${head} ${relation} ${tail}`);
  return [id, question, ...answers, explanation, ...facts, ...passages.flatMap((p) => [p.title, p.sentences.join(" ")])];
}

function refresh() {
  list([...rows.keys()].filter((place) => fitsFilters(rows[place])));
  drawCount(listed.length === 0 ? "Nothing fits these filters."
    : `${number(listed.length)} of ${number(rows.length)} rows`);
}

const inView = () => current;
const hashOf = ({ benchmark, split, id }) =>
  "#" + [benchmark, split, id].map((p) => encodeURIComponent(p.replace(/\p{Surrogate}/gu, "\ufffd"))).join("/");

function row(place) {
  const { benchmark, id, question, label } = rows[place];
  return entry(place, hashOf(rows[place]), quoted("span", question, { class: "text" }),
    make("span", { class: "meta" }, quoted("span", benchmark), " · ", quoted("span", id)),
    make("span", { class: "badges" }, badge(label)));
}

function openPlace(place, quietly = false) {
  try {
    history[quietly ? "replaceState" : "pushState"](null, "", hashOf(rows[place]));
  } catch {
    // Some browsers allow only so many a minute; the page works without.
  }
  show(place);
}

function show(place) {
  current = place;
  byId("details").className = `${kinds.get(rows[place].label).tone}-row`;
  showDetails(...parts(rows[place]));
}

function parts(shown) {
  const { benchmark, split, id, question, answers, label, explanation, confidence, passages, path, graph } = shown;
  const [answer, ...aliases] = answers;
  const basis = passages.map((p) => unique([...p.quoted, ...p.stated, ...p.supporting]));
  const rank = (place) => (basis[place].length ? 0 : passages[place].gold ? 1 : 2);
  const anyBasis = basis.some((sentences) => sentences.length);
  const order = [...passages.keys()].sort((a, b) => rank(a) - rank(b) || a - b);
  const others = graph.filter((fact) => !path.some((hop) => isSame(hop, fact)));
  return [
    headline([benchmark, split, id].flatMap((part, at) => [at ? " · " : "", quoted("span", part)]), question,
      badge(label), " ", make("b", {}, "Answer "), quoted("span", answer), aliases.map((alias) => [" · ", quoted("span", alias)])),
    make("section", { class: `verdict ${kinds.get(label).tone}`, "aria-label": "Label" },
      make("span", { class: "meta" }, kinds.get(label).words, data.meanings[label] ? `: ${data.meanings[label]}` : ""),
      withPassages("p", explanation || "No reason is given.", { class: "reason" }),
      make("p", { class: "meta" }, confidence === null ? "" : `confidence ${confidence} · `, "by ", teacherOf(shown))),
    make("h3", {}, "Path"), chains(path, answers),
    make("h3", {}, `Passages (${passages.length})`),
    make("p", { class: "note" }, anyBasis ? `Marked: what ${passages.some((p) => p.supporting.length) ? "the benchmark calls supporting, " : ""}states the path, or is quoted above. Passages with marks come first.`
      : "No sentence is named as supporting; gold passages come first."),
    ...order.map((place) => passageOf(passages[place], place, passages[place].sentences, basis[place],
      rank(place) === (anyBasis ? 0 : 1))),
    others.length ? make("details", {}, make("summary", {}, `Other facts of the graph (${others.length})`), triples(others)) : "",
    isAnnotated(shown) ? make("details", {}, make("summary", {}, "The benchmark's own annotations"), annotations(shown)) : "",
  ];
}

const isSame = (one, other) => ["head", "relation", "tail", "passage"].every((key) => one[key] === other[key]);

/** The path as chains of names: a fact that begins where the last one ended goes on in its line. */
function chains(path, answers) {
  if (path.length === 0) return make("p", { class: "note" }, "None was found.");
  const isAnswer = (name) => answers.some((answer) => answer.toLowerCase() === name.toLowerCase());
  const node = (name) => quoted("span", name, { class: isAnswer(name) ? "node answer" : "node" });
  const lines = [];
  path.forEach(({ head, relation, tail, passage }, at) => {
    if (at === 0 || path[at - 1].tail.toLowerCase() !== head.toLowerCase()) lines.push([node(head)]);
    lines.at(-1).push(make("span", { class: "edge" }, "— ", quoted("span", relation),
      passage ? withPassages("span", ` (Passage ${passage})`) : "", " →"), node(tail));
  });
  return make("div", {}, lines.map((line) => make("div", { class: "chain" }, line)));
}

/** The labels of the whole set, as a bar and as buttons that filter. */
function drawTotals() {
  const all = Object.values(data.totals).reduce((total, count) => total + count, 0);
  for (const [name, { words, tone }] of kinds) {
    const count = data.totals[name] ?? 0;
    if (count === 0) continue;
    const part = make("span", { class: tone });
    part.style.flexGrow = count;
    byId("bar").append(part);
    const button = make("button", { type: "button", class: tone }, `${words} ${number(count)}`);
    button.addEventListener("click", () => {
      const place = String(onPage.indexOf(name));
      const select = byId("filter-label");
      select.value = select.value === place ? "" : place;
      refresh();
    });
    byId("totals").append(button);
  }
  byId("part").hidden = rows.length === all;
  byId("part").textContent = `This page holds ${number(rows.length)} of ${number(all)} rows: those of rare labels, and equally many of the others. ` +
    "The counts above are of all rows; safe-stepwise view_labels DIR --rows N makes a larger page.";
}

/** Show the row that the address names, or else the first of noise. */
function follow() {
  const named = rows.findIndex((one) => hashOf(one) === location.hash);
  if (location.hash.length > 1 && named < 0) {
    current = null;
    markCurrent();
    byId("details").replaceChildren(make("p", { role: "alert" }, "The link names no row of this page. Choose one from the list."));
  } else if (rows.length) {
    show(named >= 0 ? named : Math.max(0, rows.findIndex((one) => isNoise(one) && one.path.length)));
    revealCurrent();
  }
}

window.addEventListener("hashchange", follow);
makeFilters(rows, CHOICES.filter(([key, , values]) => key === "label" || values.length > 1), textsOf,
  "question, answer, reason, passages");
drawTotals();
refresh();
follow();
