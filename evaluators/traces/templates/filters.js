// What is shown: the filters above the list.

const filters = {};
const haystacks = new Map();

/** All that the search reads of a run, in lower case. */
function haystack(run) {
  if (!haystacks.has(run)) {
    const { id, text, references } = questions[run.question];
    const said = run.attempts.flatMap((a) => [a.text, a.label, a.diagnosis, a.guidance, a.query, a.read]);
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
  ["answering", ANSWERING, answering, (run, value) => systems[run.system].answering === value],
  ["options", "Options", unique(systems.map((s) => s.options)), (run, value) => systems[run.system].options === value],
  ["error", "Error type", data.labels, (run, value) => run.attempts.some((a) => a.label === value)],
  ["state", "State", data.states.map(([state]) => state),
    (run, value) => run.attempts.some((a) => a.state === value)],
  ["ending", "Ended", unique(runs.map((run) => run.stop)), (run, value) => run.stop === value],
  ["outcome", "Outcome", Object.keys(OUTCOMES), (run, value) => run.worth === value],
  ...RULES.map((rule) => [`path-${rule}`, `Answer and path (${rule})`, EARNED,
    (run, value) => earned(run, rule) === value]),
];

/** What values are called, where that is not what they are. */
const NAMES = {
  method: new Map(systems.map((system) => [system.method, system.title])),
  state: new Map(data.states),
  ending: ENDS,
};
/** Filters that are there only where there is something to choose. */
const OPTIONAL = ["options", "state", "ending"];

function makeFilters() {
  const bar = byId("filters");
  for (const [key, label, values, fits] of CHOICES) {
    if (OPTIONAL.includes(key) && values.length < 2) continue;
    const select = make("select", { id: `filter-${key}` });
    select.append(new Option("all", ""));
    values.forEach((value, place) => {
      const count = runs.filter((run) => fits(run, value)).length;
      const name = NAMES[key]?.get(value) ?? (value || "none");
      select.append(new Option(plain(`${name} (${number(count)})`), String(place)));
    });
    select.addEventListener("change", refresh);
    bar.append(make("div", {}, make("label", { for: select.id }, label), select));
    filters[key] = (run) => select.value === "" || fits(run, values[Number(select.value)]);
  }
  const search = make("input", { id: "filter-text", type: "search", spellcheck: "false",
    placeholder: "question, answer, steps, feedback" });
  let timer;
  search.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(refresh, 120); });
  bar.append(make("div", { class: "wide" }, make("label", { for: search.id }, "Search"), search));
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
