// Whether answers were earned: what each step states, by which rule, and what that comes to.

const RULES = unique(runs.flatMap((run) => run.paths.map(({ rule }) => rule))).filter(Boolean);
const EARNED = ["right answer, wrong path", "right answer, right path", "right answer, undecided path",
  "wrong answer, right path", "wrong answer, wrong path", "wrong answer, undecided path", "no chain"];
const PATHS = new Map([["faithful", "right path"], ["unfaithful", "wrong path"], ["unjudgeable", "undecided path"]]);
/** What a step comes to, in words. */
const FAULTS = new Map([
  ["factual", "states what is not so"],
  ["relation", "joins its ends by another relation"],
  ["reversed", "exchanges head and tail"],
  ["order", "rests on what no step before it found"],
  ["missing", "lacks a fact that is needed"],
  ["unread", "could not be decided"],
]);

/** Answer and path of a run under a rule; nothing where it was not measured. */
function earned(run, rule) {
  const found = run.paths.find((one) => one.rule === rule || one.rule === "");
  if (found === undefined || !["right", "wrong"].includes(run.worth)) return undefined;
  return PATHS.has(found.path) ? `${run.worth} answer, ${PATHS.get(found.path)}` : "no chain";
}

function path(run) {
  return run.paths.length ? [make("h3", {}, "Path"), ...run.paths.map(judgedBy)] : [];
}

function judgedBy({ rule, path, fault, first, missing, steps }) {
  const verdict = make("span", { class: `fate ${path.replace(" ", "-")}` }, path);
  const why = fault ? ` ${first ? `Step ${steps[first - 1]?.number}: ` : ""}${FAULTS.get(fault) ?? fault}` : "";
  const said = make("p", {}, rule ? make("b", {}, `Rule “${rule}” `) : "", verdict, why);
  if (steps.length === 0) return said;
  const scored = steps.some(({ score }) => score !== null);
  const lines = steps.map((step) => make("tr", { class: step.fault ? "bad" : undefined },
    make("th", { scope: "row" }, number(step.number)),
    quoted("td", step.text),
    make("td", {}, step.triples.length ? step.triples.map(triple) : "–"),
    make("td", {}, FAULTS.get(step.fault) ?? (step.fault || (step.triples.length ? "states it" : "states nothing needed"))),
    scored ? make("td", {}, step.score === null ? "–" : fixed(step.score, 2)) : null));
  const heads = ["Step", "What it says", "Triples", "Verdict", ...(scored ? ["Score"] : [])];
  const lacking = missing.length ? make("p", {}, "Stated by no step: ", missing.map(triple)) : "";
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `The path by the rule ${rule}` },
    said,
    make("table", { class: "path" },
      make("thead", {}, make("tr", {}, heads.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, lines)),
    lacking);
}

function triple([head, relation, tail]) {
  return make("span", { class: "triple" },
    quoted("span", head), " – ", quoted("i", relation), " – ", quoted("span", tail));
}
