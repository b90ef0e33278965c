// One run of a question, and the question.

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
  const reading = article.contains(document.activeElement);
  const question = questions[run.question];
  const system = systems[run.system];
  showDetails(
    headline(origin(question), question.text || question.id,
      badge(run.worth), " ", quoted("b", run.answer || "no answer"), " ",
      make("span", { class: "meta" }, "by ", quoted("span", fullName(system)), system.simulated && !fullName(system).includes("simulated") ? ", simulated" : "")),
    references(question),
    rejections(run),
    otherRuns(run),
    make("h3", {}, run.attempts.some(isReply) ? "Replies" : "Steps"),
    steps(run.attempts, run),
    ...samples(run),
    ...path(run),
    ...passages(question, run),
    make("h3", {}, "This run"),
    answer(run, system));
  // The link that was followed is gone, and with it the place of whoever uses the keyboard.
  if (reading) article.querySelector(".runs [aria-current]")?.focus({ preventScroll: true });
}

function references({ references }) {
  if (references.length === 0) return "";
  const texts = references.flatMap((text, place) => [place ? " · " : "", quoted("span", text)]);
  return make("p", { class: "references" }, make("b", {}, references.length > 1 ? "References " : "Reference "), texts);
}

/** The first steps that were rejected, each a way to where it stands, and how many more there are. */
function rejections(run) {
  const found = run.attempts.map((attempt, place) => ({ attempt, place })).filter(({ attempt }) => !attempt.accepted);
  if (found.length === 0) return "";
  const links = found.slice(0, 5).flatMap(({ attempt, place }, at) => {
    const link = make("button", { type: "button", class: "reference" }, numbered(attempt));
    link.addEventListener("click", () => {
      const card = byId("details").querySelectorAll(".attempt")[place];
      card.scrollIntoView();
      card.focus({ preventScroll: true });
    });
    return [at ? " · " : "", link, attempt.label ? [" ", quoted("span", attempt.label, { class: "label" })] : ""];
  });
  return make("p", { class: "rejections" }, make("b", {}, "Rejected "), links,
    found.length > 5 ? ` and ${number(found.length - 5)} more` : "");
}

function otherRuns(run) {
  if (runsOf[run.question].length === 1) return "";
  const lines = runsOf[run.question].map((other) => {
    const system = systems[other.system];
    const link = make("a", { href: hashOf(other), "aria-current": other === run ? "true" : undefined },
      quoted("span", system.label));
    const rejected = other.attempts.filter((attempt) => !attempt.accepted).length;
    return make("tr", { class: other === run ? "chosen" : undefined },
      make("th", { scope: "row" }, link),
      answering.length > 1 ? quoted("td", system.answering, { class: "name", title: plain(system.answering) }) : null,
      make("td", {}, badge(other.worth)),
      quoted("td", other.answer || "–", { class: "name", title: plain(other.answer) }),
      make("td", {}, number(other.steps)),
      make("td", {}, number(rejected)),
      make("td", {}, number(cost(other, 0))),
      make("td", {}, cost(other, 1) ? number(cost(other, 1)) : "–"));
  });
  const heads = ["Method", ...(answering.length > 1 ? [ANSWERING] : []),
    "Outcome", "Answer", "Steps", "Rejected", "Calls", "Prompt tokens"];
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "All methods on this question" },
    make("table", { class: "runs" },
      make("thead", {}, make("tr", {}, heads.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, lines)));
}

function answer(run, system) {
  const facts = [
    ["Final answer", [run.answer ? quoted("strong", run.answer) : "none", " ", badge(run.worth)]],
    ["Judge", [run.judge ? quoted("span", run.judge)
      : run.verdict === null ? "none asked: right and wrong go by exact match" : run.verdict]],
    ["Scores", [`EM ${fixed(100 * run.em, 1)} · F1 ${fixed(100 * run.f1, 1)}`]],
    ["Ended", [quoted("span", ENDS.get(run.stop) ?? run.stop)]],
    ["Method", [quoted("span", system.title), system.options ? ` · ${system.options}` : ""]],
    ...system.players.map(([role, player]) => [title(role), [quoted("span", player)]]),
  ];
  for (const [name, text] of run.measures) facts.push([name, [quoted("span", text)]]);
  if (system.simulated) facts.push(["Simulated", ["an engine without a model took part"]]);
  for (const role of roles) {
    const [calls, ...tokens] = [0, 1, 2, 3].map((what) => cost(run, what, role));
    if (sum(tokens)) facts.push([`${title(role)}'s cost`, [`${number(calls)} calls, ${tokensText(tokens)} tokens`]]);
  }
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

function steps(attempts, run) {
  const groups = new Map();
  for (const attempt of attempts) {
    groups.set(attempt.step, [...(groups.get(attempt.step) ?? []), attempt]);
  }
  const items = [...groups.values()].map((tries) =>
    make("li", { class: "step", "aria-label": numbered(tries[0]) },
      tries.map((attempt, place) => attemptCard(attempt, place + 1, tries.length))));
  if (run.stop === "failed") {
    items.push(make("li", { class: "broken" },
      "Here a request failed for good, which ended the question. ", quoted("span", run.failure)));
  } else if (items.length === 0) {
    items.push(make("li", { class: "broken" }, "No attempts were recorded."));
  }
  return make("ol", { class: "steps" }, items);
}

/** The chains that were sampled, of which one was chosen: each folded, with its answer and the score of its chain. */
function samples(run) {
  if (run.samples.length === 0) return [];
  const chains = run.samples.map((sample, place) => make("details", { class: "sample" },
    make("summary", {}, `Sample ${place + 1}: `, quoted("b", sample.answer || "no answer"), " ",
      sample.score === null ? "" : make("span", { class: "meta" }, `score ${fixed(sample.score, 2)} `),
      sample.chosen ? make("span", { class: "badge right" }, "✓ chosen") : ""),
    steps(sample.attempts, sample)));
  return [make("h3", {}, `Sampled chains (${number(run.samples.length)})`),
    make("p", { class: "note" }, "The steps above are those of the chosen one."), ...chains];
}

/** What answers at once takes no steps: each reply is a whole answer, put to the vote if several. */
function isReply(attempt) {
  return attempt.state === "answer";
}

function numbered(attempt) {
  return `${isReply(attempt) ? "Reply" : "Step"} ${attempt.step}`;
}

/** A long text, of which one line is seen until it is opened. */
function folded(text) {
  return make("dd", {}, make("details", {}, make("summary", { class: "start" }, quoted("span", text.slice(0, 200))),
    quoted("div", text, { class: "raw" })));
}

function attemptCard(attempt, place, count) {
  const judged = attempt.label === "Correct" ? "accepted" : "forced";
  const look = !attempt.accepted ? "rejected" : attempt.label === "" ? "unjudged" : judged;
  const head = [make("b", {}, numbered(attempt))];
  if (attempt.state) {
    head.push(quoted("span", attempt.edge, { class: "tag state" }));
  }
  if (count > 1) head.push(make("span", { class: "meta" }, `attempt ${place} of ${count}`));
  head.push(make("span", { class: `fate ${look}` }, attempt.fate));
  if (attempt.label) head.push(quoted("span", attempt.label, { class: "label" }));
  if (attempt.uptake) head.push(quoted("span", attempt.uptake, { class: "tag uptake" }));
  const { reading } = attempt;
  if (reading?.revises) head.push(quoted("span", `revises ${reading.revises}`, { class: "tag revises" }));
  const read = reading === null ? [["Read", attempt.read]]
    : [...reading.fields, ["Not strictly", reading.why]];
  const said = [...read, ["Diagnosis", attempt.diagnosis], ["Guidance", attempt.guidance], ["Query", attempt.query],
    ["Score", attempt.score]]
    .filter(([, text]) => text !== "")
    .flatMap(([name, text]) => [quoted("dt", name), withPassages("dd", text)]);
  if (attempt.retrieved.length) {
    const titles = attempt.retrieved.flatMap((p, at) => [at ? " · " : "", quoted("span", p.title)]);
    said.push(make("dt", {}, "Retrieved"), make("dd", {}, titles));
  }
  for (const [role, thought] of attempt.thoughts) {
    said.push(make("dt", {}, `Thought of the ${role}`), folded(thought));
  }
  if (attempt.verdict) said.push(make("dt", {}, "Verifier's reply"), folded(attempt.verdict));
  const costs = attempt.tokens.filter(([, tokens]) => sum(tokens) > 0)
    .map(([role, tokens]) => `${role}: ${tokensText(tokens)}`);
  return make("section", { class: `attempt ${look}`, tabindex: -1 },
    make("header", {}, head),
    withPassages("p", attempt.text || (attempt.fate === "nobody was asked" ? "–" : "(an empty reply)"), { class: "said" }),
    said.length ? make("dl", { class: "feedback" }, said) : "",
    costs.length ? make("p", { class: "meta tokens" }, `Tokens · ${costs.join(" · ")}`) : "");
}
