// The list of questions.

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
  const link = make("a", { href: hashOf(preferred(place)) },
    quoted("span", text || id, { class: "text" }),
    make("span", { class: "meta" }, origin(questions[place])),
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

/** Scroll the list, and nothing else, until a row is in view. */
function reveal(link) {
  const pane = byId("questions");
  const [row, view] = [link.getBoundingClientRect(), pane.getBoundingClientRect()];
  const [top, bottom] = [Math.max(view.top, 0), Math.min(view.bottom, window.innerHeight)];
  if (row.top < top) pane.scrollTop -= top - row.top;
  else if (row.bottom > bottom) pane.scrollTop += row.bottom - bottom;
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
  reveal(link);
}
