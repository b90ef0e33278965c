// Scores and costs of what is shown.

const SCORES = ["Questions", "Right", "Wrong", "Unscored", "Failed", "EM", "F1", "Acc", "Calls", "Steps"];
const TOKENS = ["Prompt", "Cached", "Completion"];

/** The cells of a line, as texts, or as pairs of a text and what it stands for. */
function totals(found) {
  const count = (worth) => found.filter((run) => run.worth === worth).length;
  const correct = found.filter((run) => run.verdict === "correct").length;
  const judged = correct + found.filter((run) => run.verdict === "incorrect").length;
  const tokens = roles.flatMap((role) => {
    const [prompt, cached, completion] = [1, 2, 3].map((what) => sum(found.map((run) => cost(run, what, role))));
    if (prompt + completion === 0) return ["–", "–", "–"];
    return [number(prompt), [`${fixed((100 * cached) / prompt, 1)}%`, number(cached)], number(completion)];
  });
  return [
    number(found.length),
    ...Object.keys(OUTCOMES).map((worth) => number(count(worth))),
    fixed(100 * mean(found.map((run) => run.em)), 1),
    fixed(100 * mean(found.map((run) => run.f1)), 1),
    fixed((100 * correct) / judged, 1),
    fixed(mean(found.map((run) => cost(run, 0))), 1),
    fixed(mean(found.map((run) => run.steps)), 1),
    ...tokens,
  ];
}

function drawTotals() {
  const cells = (found) => totals(found).map((cell) => {
    const [text, title] = [cell].flat();
    return make("td", { title }, text);
  });
  const line = (system) => make("tr", { class: "system" },
    make("th", { scope: "row" }, quoted("span", system.label), " ",
      system.simulated ? make("span", { class: "tag" }, "simulated") : ""),
    cells(runs.filter((run) => systems[run.system] === system && shown.has(run))));
  const columns = 1 + SCORES.length + TOKENS.length * roles.length;
  const bodies = answering.map((player) => make("tbody", {},
    answering.length > 1
      ? make("tr", {}, quoted("th", player, { scope: "rowgroup", colspan: columns, class: "answering" })) : "",
    systems.filter((system) => system.answering === player).map(line)));
  if (systems.length > 1) {
    bodies.push(make("tbody", {},
      make("tr", { class: "all" }, make("th", { scope: "row" }, "All"), cells([...shown]))));
  }
  const head = (text, attributes) => make("th", { scope: "col", ...attributes }, text);
  const group = { scope: "colgroup", colspan: 3, class: "group" };
  const table = make("table", {},
    make("thead", {},
      make("tr", {}, ["Method", ...SCORES].map((name) => head(name, { rowspan: 2 })),
        roles.map((role) => head(`${title(role)}'s tokens`, group))),
      make("tr", {}, roles.flatMap(() => TOKENS).map((name) => head(name)))),
    bodies);
  byId("table").replaceChildren(
    make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Scores and costs" }, table),
    make("p", { class: "meta" }, "EM, F1 and Acc in percent, over all questions alike. Calls and steps " +
      "are a question's, tokens those of all questions; cached: the share of the prompt; “–”: none reported."));
}
