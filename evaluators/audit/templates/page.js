// The page as a whole: which row is shown, what is answered, its keys.

let current = 0;

function show(place) {
  current = place;
  byId("row").replaceChildren(...content(rows[place]));
  drawForm();
  drawCount();
  window.scrollTo(0, 0);
}

const move = (by) => show(Math.min(Math.max(current + by, 0), rows.length - 1));

function toOpen() {
  const place = rows.findIndex((_, at) => !isDone(at));
  if (place < 0) say("Every row is judged. Export, and send the file.");
  else show(place);
}

function drawCount() {
  const done = rows.filter((_, place) => isDone(place)).length;
  const kept = keeps ? "" : " · this browser keeps nothing: export before you leave";
  byId("count").textContent = `row ${number(current + 1)} of ${number(rows.length)} · ${number(done)} judged${kept}`;
}

/** A line below the buttons; none takes it away. */
function say(text = "") {
  byId("said").hidden = text === "";
  byId("said").textContent = plain(text);
}

function drawForm() {
  const note = make("textarea", { id: "note", "aria-keyshortcuts": "m", "aria-label": "Note" });
  note.value = judged[current].note;
  note.addEventListener("input", () => { judged[current].note = note.value; keep(); drawCount(); });
  byId("judge").replaceChildren(...asks(current).map((question) => (question.optional ? choice : radios)(question)),
    make("fieldset", {}, make("legend", {}, "Note ", make("kbd", {}, "m")), note));
}

function radios({ name, text, answers }) {
  return make("fieldset", {}, make("legend", {}, text), answers.map(([value, words, key]) => {
    const radio = make("input", { type: "radio", name, value, "aria-keyshortcuts": key });
    radio.checked = judged[current].answers[name] === value;
    radio.addEventListener("change", () => answer(name, value));
    return make("label", {}, radio, words, make("kbd", {}, key));
  }));
}

function choice({ name, text, answers }) {
  const select = make("select", { id: name, "aria-keyshortcuts": "i", "aria-label": text });
  select.append(new Option("none", ""), ...answers.map(([value, words]) => new Option(words, value)));
  select.value = judged[current].answers[name] ?? "";
  select.addEventListener("change", () => answer(name, select.value));
  return make("fieldset", {}, make("legend", {}, text, " ", make("kbd", {}, "i")), select);
}

/** Answer a question of the row in view, or take the answer back. */
function answer(name, value) {
  if (value) judged[current].answers[name] = value;
  else delete judged[current].answers[name];
  const focused = document.activeElement?.name || document.activeElement?.id;
  keep();
  drawForm();
  drawCount();
  const again = document.querySelector(`#judge [name="${CSS.escape(focused)}"]:checked, #judge #${CSS.escape(focused || "none")}`);
  again?.focus();
}

/** Answer by a key; the same key again takes the answer back. */
function press(key) {
  for (const { name, answers } of asks(current)) {
    const found = answers.find(([, , shortcut]) => shortcut === key);
    if (found) answer(name, judged[current].answers[name] === found[0] ? "" : found[0]);
  }
}

function download() {
  const reviewer = byId("reviewer").value.trim();
  if (reviewer === "") {
    say("Give your name first: it tells your judgements from those of others.");
    byId("reviewer").focus();
    return;
  }
  const lines = exported(reviewer);
  if (lines === "") return say("Nothing is judged yet.");
  const address = URL.createObjectURL(new Blob([lines], { type: "application/x-ndjson" }));
  const file = `audit-${data.of}-${sample.slice(0, 8)}-${reviewer.replace(/[^\p{L}\p{N}._-]+/gu, "-")}.jsonl`;
  make("a", { href: address, download: file }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  say(`Exported ${number(lines.split("\n").length - 1)} rows to ${file}.`);
}

async function upload(file) {
  try {
    const [found, reviewer] = imported(await file.text());
    const own = byId("reviewer").value.trim();
    if (own !== "" && own !== reviewer) throw new Error(`The file is ${reviewer}'s, and the name here ${own}. Nothing was imported.`);
    byId("reviewer").value = reviewer;
    take(found);
    keep();
    show(current);
    say(`Imported ${number(found.length)} rows.`);
  } catch (error) {
    say(error.message);
  }
}

const KEYS = {
  n: () => move(1), ArrowRight: () => move(1), p: () => move(-1), ArrowLeft: () => move(-1),
  u: toOpen, e: download, m: () => byId("note").focus(), i: () => byId("instead")?.focus(),
};

document.addEventListener("keydown", (event) => {
  const at = document.activeElement;
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "Escape") return void at.blur();
  // Whoever writes, or chooses from a list, means letters.
  if (at.matches("textarea, select, input:not([type=radio])")) return;
  const does = KEYS[event.key] ?? (/^[1-9]$/.test(event.key) ? () => press(event.key) : undefined);
  if (does === undefined) return;
  event.preventDefault();
  say();
  does();
});

function drawHelp() {
  const keys = (question) => question.optional ? "i to choose"
    : question.answers.map(([, words, key]) => `${key} ${words}`).join(", ");
  byId("help").append(
    ...asked.map((question) => make("p", {}, make("b", {}, question.text), ` ${keys(question)}`)),
    make("p", {}, "n or → next, p or ← previous, u first row that is not judged, m note (Escape leaves it), e export. " +
      "The same key again takes an answer back. A question may be left open; a row counts as judged when all are answered."),
    make("p", {}, "Judge by the passages shown, not by what you know. The page sends nothing anywhere: export, and send the file. " +
      "Import takes an earlier export of yours up again, in the place of what is judged here of its rows."));
}

byId("previous").addEventListener("click", () => move(-1));
byId("next").addEventListener("click", () => move(1));
byId("open").addEventListener("click", toOpen);
byId("export").addEventListener("click", download);
byId("reviewer").addEventListener("input", keep);
byId("judge").addEventListener("submit", (event) => event.preventDefault());
byId("import").addEventListener("change", (event) => {
  const [file] = event.target.files;
  if (file) upload(file);
  event.target.value = "";
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("row").focus();
});

drawHelp();
takeUp();
show(Math.max(0, rows.findIndex((_, place) => !isDone(place))));
