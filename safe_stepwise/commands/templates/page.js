// Each row: the question, its steps with their claims, and the passages with the sentences that claims rest on.

const className = (status) => status.replace(" ", "-");

const TONES = { sound: "good", Correct: "good", undecided: "warn", "no step": "warn", search: "warn" };
const BY_GRAVITY = ["otherwise", "not found", "not read", "stated"];

/** A text, with each stretch highlighted that spans cover; the mark of the first one counts. Offsets count characters. */
function highlighted(text, spans, attributesOf) {
  const characters = [...text];
  const edges = [...new Set([0, characters.length, ...spans.flatMap(({ start, end }) => [start, end])])];
  edges.sort((one, other) => one - other);
  const pieces = [];
  edges.slice(1).forEach((end, place) => {
    const words = characters.slice(edges[place], end).join("");
    const mark = spans.find((span) => span.start <= edges[place] && end <= span.end)?.mark;
    if (pieces.length && pieces.at(-1).mark === mark) pieces.at(-1).words += words;
    else pieces.push({ words, mark });
  });
  return make("p", { dir: "auto" },
    pieces.map(({ words, mark }) => (mark ? make("mark", attributesOf(mark), words) : words)));
}

/** The id of the sentence that a claim rests on; a claim has none if it rests on a step, or on nothing. */
const sentenceId = (row, claim) =>
  claim.quote_end === undefined || !claim.passage ? "" : `row-${row}-passage-${claim.passage}-sentence-${claim.sentence}`;

function claimItem(row, text, claim) {
  const { status, start, end, passage, earlier_step: step, reason } = claim;
  const id = sentenceId(row, claim);
  const place = id ? make("a", { href: `#${id}` }, `Passage ${passage}`) : step ? `step ${step}` : "";
  return make("li", {}, make("mark", { class: className(status) }, status), " ",
    quoted("q", [...text].slice(start, end).join("")),
    place ? [" – ", place] : reason ? [" – ", quoted("span", reason)] : "");
}

function stepItem(row, { step, label, diagnosis, verifier, claims }) {
  const tone = TONES[label] ?? "bad";
  const spans = claims.map(({ start, end, status }) => ({ start, end, mark: status }));
  spans.sort((one, other) => BY_GRAVITY.indexOf(one.mark) - BY_GRAVITY.indexOf(other.mark));
  return make("li", { class: `step ${tone}` },
    quoted("span", label, { class: `badge ${tone}` }),
    highlighted(step, spans, (status) => ({ class: className(status), title: status })),
    diagnosis ? quoted("p", diagnosis, { class: "meta" }) : "",
    verifier ? quoted("p", `the verifier: ${verifier.label} ${verifier.diagnosis}`, { class: "meta" }) : "",
    claims.length
      ? make("ul", { class: "claims", "aria-label": "Claims" }, claims.map((claim) => claimItem(row, step, claim)))
      : "");
}

function passageBlock(row, claims, { title, text }, place) {
  const spans = claims
    .filter((claim) => claim.passage === place + 1 && sentenceId(row, claim))
    .map((claim) => ({ start: claim.quote_start, end: claim.quote_end, mark: sentenceId(row, claim) }));
  return make("div", { class: "passage" },
    make("h4", {}, `Passage ${place + 1}`, title ? [": ", quoted("span", title)] : ""),
    highlighted(text, spans, (id) => ({ id, tabindex: -1 })));
}

function rowSection({ question, judged_by: judge, note, passages, steps }, place) {
  const row = place + 1;
  const claims = steps.flatMap((step) => step.claims);
  return make("section", { class: "row" },
    quoted("h2", question),
    make("p", { class: "meta" }, `Judged by the ${judge}`, note ? [": ", quoted("span", note)] : ""),
    make("div", { class: "columns" },
      make("div", {}, make("h3", {}, "Steps"), make("ol", { class: "steps" }, steps.map((step) => stepItem(row, step)))),
      make("div", { class: "passages", tabindex: 0, role: "region", "aria-label": "Passages" },
        make("h3", {}, "Passages"), passages.map((page, number) => passageBlock(row, claims, page, number)))));
}

byId("rows").replaceChildren(...data.map(rowSection));

/** Move the focus, too, so that the keyboard goes on at the sentence. */
function follow() {
  const target = document.getElementById(location.hash.slice(1));
  if (target) target.focus();
}
addEventListener("hashchange", follow);
follow();
