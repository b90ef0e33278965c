// The page as a whole: its head, its address, its keys.

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

/** Show the run that the address names, or one with a rejected step. */
function follow() {
  const wanted = location.hash;
  const named = wanted.length > 1 ? runs.find((run) => hashOf(run) === wanted) : undefined;
  if (named !== undefined) {
    show(named);
    revealCurrent();
  } else if (wanted.length > 1) {
    current = null;
    markCurrent();
    byId("details").replaceChildren(make("p", { role: "alert" },
      "The link names no trajectory of this page. Choose a question from the list."));
  } else if (listed.length) {
    show(telling());
    revealCurrent();
  }
}

/** Whether a step of a run was rejected and at once, written anew, accepted. */
const isMended = (run) => run.attempts.some((one, place) => {
  const next = run.attempts[place + 1];
  return !one.accepted && next !== undefined && next.accepted && next.step === one.step;
});

/** The run to begin with: one that shows what a verifier is for, if there is any. */
function telling() {
  const fitting = listed.flatMap((place) => runsOf[place].filter((run) => shown.has(run)));
  const mended = fitting.filter(isMended);
  const verified = mended.filter((run) => unique(systems[run.system].players.map(([, who]) => who)).length > 1);
  return [...verified, ...mended].find((run) => run.worth === "right") ?? mended[0]
    ?? fitting.find((run) => run.attempts.some((one) => !one.accepted)) ?? preferred(listed[0]);
}

window.addEventListener("hashchange", follow);

drawHead();
drawMarks();
makeFilters(runs, CHOICES.filter(([key, , values]) => !OPTIONAL.includes(key) || values.length > 1), textsOf,
  "question, answer, steps, feedback");
refresh();
follow();
