// Each row: the question, its steps with their claims, and the passages with the sentences that claims rest on.

const className = (status) => status.replace(" ", "-");

/** A text in pieces, of which those with a mark are highlighted. */
function text(pieces, attributesOf) {
  const parts = pieces.map(([words, mark]) => (mark ? make("mark", attributesOf(mark), words) : words));
  return make("p", { dir: "auto" }, parts);
}

function claim({ status, words, reason, passage, step, anchor }) {
  const place = anchor
    ? make("a", { href: `#${anchor}` }, `Passage ${passage}`)
    : step ? `step ${step}` : "";
  return make("li", {}, make("mark", { class: className(status) }, status), " ", quoted("q", words),
    place ? [" – ", place] : "", reason ? [" – ", quoted("span", reason)] : "");
}

function stepItem({ label, tone, reason, pieces, claims }) {
  return make("li", { class: `step ${tone}` },
    quoted("span", label, { class: `badge ${tone}` }),
    text(pieces, (status) => ({ class: className(status), title: status })),
    reason ? quoted("p", reason, { class: "meta" }) : "",
    claims.length ? make("ul", { class: "claims", "aria-label": "Claims" }, claims.map(claim)) : "");
}

function passage({ title, pieces }, place) {
  return make("div", { class: "passage" },
    make("h4", {}, `Passage ${place + 1}`, title ? [": ", quoted("span", title)] : ""),
    text(pieces, (id) => ({ id, tabindex: -1 })));
}

function rowSection({ question, judgedBy, note, passages, steps }) {
  return make("section", { class: "row" },
    quoted("h2", question),
    make("p", { class: "meta" }, `Judged by the ${judgedBy}`, note ? [": ", quoted("span", note)] : ""),
    make("div", { class: "columns" },
      make("div", {}, make("h3", {}, "Steps"), make("ol", { class: "steps" }, steps.map(stepItem))),
      make("div", { class: "passages", tabindex: 0, role: "region", "aria-label": "Passages" },
        make("h3", {}, "Passages"), passages.map(passage))));
}

byId("rows").replaceChildren(...data.map(rowSection));

/** Move the focus, too, so that the keyboard goes on at the sentence. */
function follow() {
  const target = document.getElementById(location.hash.slice(1));
  if (target) target.focus();
}
addEventListener("hashchange", follow);
follow();
