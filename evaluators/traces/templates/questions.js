// The list of questions.

let shown = new Set();
let current = null;

function refresh() {
  shown = new Set(runs.filter(fitsFilters));
  list(questions.map((_, place) => place).filter((place) => runsOf[place].some((run) => shown.has(run))));
  drawCount(shown.size === 0 ? "Nothing fits these filters."
    : `${number(shown.size)} of ${number(runs.length)} trajectories, ` +
      `${number(listed.length)} of ${number(questions.length)} questions`);
  drawTotals();
}

const inView = () => (current === null ? null : current.question);
const openPlace = (place, quietly) => open(preferred(place), quietly);

/** Where a question is from, and what was taken from its evidence. */
function origin({ benchmark, id, under }) {
  return [benchmark, id, under].filter(Boolean)
    .flatMap((part, at) => [at ? " · " : "", quoted("span", part)]);
}

/** Where a question has many runs, marks name their systems by number. */
const isNumbered = runsOf.some((found) => found.length > 4);

/** What marks stand for: those that occur, and the systems where these are numbered. */
function drawMarks() {
  const found = Object.keys(OUTCOMES).filter((worth) => runs.some((run) => run.worth === worth));
  const signs = found.flatMap((worth, at) => [at ? " " : "", badge(worth)]);
  if (!isNumbered) {
    byId("marks").append(...signs);
    return;
  }
  const named = systems.map((system) => quoted("li", fullName(system)));
  byId("marks").append(make("details", { class: "meta" },
    make("summary", {}, signs, " by system"), make("ol", {}, named)));
}

function row(place) {
  const { id, text } = questions[place];
  const badges = runsOf[place].map((run) => {
    const mark = badge(run.worth, fullName(systems[run.system]));
    if (isNumbered) mark.textContent = `${OUTCOMES[run.worth]} ${run.system + 1}`;
    if (!shown.has(run)) mark.classList.add("dim");
    return mark;
  });
  return entry(place, hashOf(preferred(place)),
    quoted("span", text || id, { class: "text" }),
    make("span", { class: "meta" }, origin(questions[place])),
    make("span", { class: "badges" }, badges));
}

/** The run of a question to open: that of the system in view if it fits, else the first. */
function preferred(place) {
  const fitting = runsOf[place].filter((run) => shown.has(run));
  return fitting.find((run) => current !== null && run.system === current.system) ?? fitting[0];
}
