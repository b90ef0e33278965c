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

/** Show the run that the address names, or the first that is listed. */
function follow() {
  const wanted = location.hash;
  const named = wanted.length > 1 ? runs.find((run) => hashOf(run) === wanted) : undefined;
  if (named !== undefined) {
    show(named);
    const at = listed.indexOf(named.question);
    while (at >= drawn) drawMore();
    const link = markCurrent();
    if (link) reveal(link);
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
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address keeps naming the trajectory
  byId("details").focus();
});
byId("more").addEventListener("click", drawMore);
new IntersectionObserver((seen) => { if (seen.some((entry) => entry.isIntersecting)) drawMore(); },
  { root: byId("questions"), rootMargin: "400px" }).observe(byId("more"));
window.addEventListener("hashchange", follow);

drawHead();
makeFilters();
refresh();
follow();
