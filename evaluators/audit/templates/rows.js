// One row, as it is to be judged.

const gold = () => make("span", { class: "tag gold" }, "gold");
const facts = (pairs) => make("dl", {}, pairs.filter(([, parts]) => parts !== null)
  .flatMap(([name, parts]) => [make("dt", {}, name), make("dd", {}, parts)]));

function content({ benchmark, id, shown }) {
  return [
    make("p", { class: "meta" }, quoted("span", benchmark), " · ", quoted("span", id)),
    quoted("h2", shown.question),
    ...(data.of === "labels" ? labelled(shown) : step(shown)),
  ];
}

function labelled(shown) {
  const [answer, ...aliases] = shown.answers;
  const marked = shown.passages.some(({ supporting }) => supporting.length > 0);
  const sure = shown.confidence === null ? "" : ` (confidence ${shown.confidence})`;
  return [
    make("p", {}, make("b", {}, "Answer "), quoted("span", answer),
      aliases.map((alias) => [" · ", quoted("span", alias)])),
    make("section", { class: "verdict" }, make("b", {}, "Label"), facts([
      ["Label", [labelOf(shown.label), sure]],
      ["Explanation", withPassages("span", shown.explanation)],
      ["By", teacherOf(shown)],
    ])),
    make("h3", {}, "Reasoning path"), triples(shown.path),
    make("h3", {}, `Passages (${shown.passages.length}; gold ones open${marked ? ", supporting sentences marked" : ""})`),
    ...shown.passages.map((passage, place) => passageOf(passage, place, passage.sentences, passage.supporting)),
    make("h3", {}, "Knowledge graph"), triples(shown.graph),
    ...(isAnnotated(shown) ? [make("h3", {}, "The benchmark's own annotations"), annotations(shown)] : []),
  ];
}

function step(shown) {
  return [
    make("h3", {}, "Accepted steps"),
    ...(shown.previous_steps.length ? shown.previous_steps.map((text) => withPassages("p", text, { class: "step" }))
      : [make("p", { class: "note" }, "None: it is the first.")]),
    make("h3", {}, "The step"),
    withPassages("p", shown.current_step, { class: "step current" }),
    make("section", { class: "verdict" }, make("b", {}, "Verdict"), facts([
      ["Label", [labelOf(shown.label), shown.category === shown.label ? "" : ` (${shown.category})`]],
      ["Diagnosis", withPassages("span", shown.diagnosis)],
      ["Guidance", withPassages("span", shown.guidance)],
      ["Query", shown.query === null ? null : quoted("span", shown.query)],
      ["Origin", [shown.origin, " · ", quoted("span", shown.teacher)]],
    ])),
    make("h3", {}, `Passages (${shown.passages.length})`),
    ...shown.passages.map((passage, place) => passageOf({ ...passage, gold: null }, place, [passage.text], [])),
  ];
}

function labelOf(label) {
  const meaning = data.meanings[label];
  return [make("strong", {}, label), meaning ? make("span", { class: "meta" }, ` ${meaning}`) : ""];
}

/** A passage; those that are not gold are closed where that is known. */
function passageOf(passage, place, sentences, supporting, open = passage.gold !== false) {
  const kind = (at) => (passage.quoted?.includes(at) ? "quoted" : undefined);
  const texts = sentences.map((sentence, at) => [at ? " " : "",
    quoted(kind(at) || supporting.includes(at) ? "mark" : "span", sentence.trim(), { class: kind(at) })]);
  return make("details", { id: `passage-${place + 1}`, class: "passage", open },
    make("summary", {}, `Passage ${place + 1}: `, quoted("span", passage.title), " ", passage.gold ? gold() : ""),
    make("p", { class: "sentences" }, texts));
}

function triples(found) {
  if (found.length === 0) return make("p", { class: "note" }, "None.");
  return make("ol", { class: "triples" }, found.map((triple) => make("li", {},
    quoted("b", triple.head), " — ", quoted("span", triple.relation, { class: "relation" }), " → ",
    quoted("b", triple.tail), " ", triple.passage ? withPassages("span", `(Passage ${triple.passage})`) : "")));
}

const isAnnotated = ({ evidence, decomposition }) => evidence.length > 0 || decomposition.length > 0;

/** Who labelled a row; where it has no annotations at all, it was read without any. */
function teacherOf(shown) {
  const isMarked = shown.passages.some(({ gold, supporting }) => gold === false || supporting.length > 0);
  const isBare = shown.teacher === "annotations" && !isAnnotated(shown) && !isMarked;
  return isBare ? "the passages alone (the row has no annotations)" : quoted("span", shown.teacher);
}

function annotations({ evidence, decomposition }) {
  const own = [
    ...evidence.map((parts) => parts.flatMap((part, at) => [at ? " — " : "", quoted("span", part)])),
    ...decomposition.map(([question, answer, passage]) => [quoted("span", question), " → ", quoted("b", answer), " ",
      passage ? withPassages("span", `(Passage ${passage})`) : ""]),
  ];
  return make("ul", {}, own.map((parts) => make("li", {}, parts)));
}

/** A text in which "Passage 3" opens that passage. */
function withPassages(tag, text, attributes = {}) {
  const parts = String(text).split(/(\bpassage \d{1,4}\b)/i).map((part, place) => {
    if (place % 2 === 0) return part;
    const link = make("button", { type: "button", class: "reference" }, part);
    link.addEventListener("click", () => {
      const target = byId(`passage-${part.slice("Passage ".length)}`);
      if (target === null) return;
      target.open = true;
      target.scrollIntoView({ block: "center" });
      target.querySelector("summary").focus({ preventScroll: true });
    });
    return link;
  });
  return make(tag, { dir: "auto", ...attributes }, parts);
}
