// What is shown: the filters above the list.

/** All that the search reads of a run. */
function textsOf(run) {
  const { id, text, references } = questions[run.question];
  const tries = [...run.attempts, ...run.samples.flatMap((sample) => sample.attempts)];
  const said = tries.flatMap((a) => [a.text, a.label, a.diagnosis, a.guidance, a.query, a.read]);
  return [id, text, ...references, run.answer, ...said];
}

const titles = new Map(systems.map((system) => [system.method, system.title]));
const CHOICES = [
  ["benchmark", "Benchmark", unique(questions.map((q) => q.benchmark)),
    (run, value) => questions[run.question].benchmark === value],
  ["method", "Method", unique(systems.map((s) => s.method)),
    (run, value) => systems[run.system].method === value, titles],
  ["answering", ANSWERING, answering, (run, value) => systems[run.system].answering === value],
  ["options", "Options", unique(systems.map((s) => s.options)), (run, value) => systems[run.system].options === value],
  ["error", "Error type", data.labels, (run, value) => run.attempts.some((a) => a.label === value)],
  ["state", "State", data.states.map(([state]) => state),
    (run, value) => run.attempts.some((a) => a.state === value), new Map(data.states)],
  ["ending", "Ended", unique(runs.map((run) => run.stop)), (run, value) => run.stop === value, ENDS],
  ["outcome", "Outcome", Object.keys(OUTCOMES), (run, value) => run.worth === value],
  ...RULES.map((rule) => [`path-${rule}`, `Answer and path (${rule})`, EARNED,
    (run, value) => earned(run, rule) === value]),
];
/** Filters that are there only where there is something to choose. */
const OPTIONAL = ["options", "state", "ending"];
