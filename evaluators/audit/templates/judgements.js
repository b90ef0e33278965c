// What was judged: answers and a note for each row, and the file that holds them.

const { rows, asked, sample } = data;
const judged = rows.map(() => ({ answers: {}, note: "" }));
const questions = new Map(asked.map((question) => [question.name, question]));
const placeOf = new Map(rows.map((row, place) => [JSON.stringify([row.benchmark, row.id]), place]));

/** What is asked of a row. */
const asks = (place) => asked.filter(({ name }) => rows[place].asks.includes(name));
const isDone = (place) => asks(place).every(({ name, optional }) => optional || judged[place].answers[name]);
const isBegun = (place) => Object.keys(judged[place].answers).length > 0 || judged[place].note.trim() !== "";

/** The line of a row. */
function line(place, reviewer) {
  const { benchmark, id, sha256, stratum } = rows[place];
  const answers = asked.map(({ name }) => [name, judged[place].answers[name] ?? null]);
  return JSON.stringify({ of: data.of, sample, benchmark, id, sha256, stratum, reviewer,
    ...Object.fromEntries(answers), note: judged[place].note });
}

/** All rows of which something was said, as JSONL. */
function exported(reviewer) {
  const places = rows.map((_, place) => place).filter(isBegun);
  return places.map((place) => `${line(place, reviewer)}\n`).join("");
}

/** What a file says, as [place, answers, note] of each line, and who; throws with the line's number. */
function imported(text) {
  const found = [];
  const reviewers = new Set();
  text.split("\n").forEach((content, at) => {
    if (content.trim() === "") return;
    try {
      const said = JSON.parse(content);
      if (said.sample !== sample) throw new Error("it is of another sample");
      const place = placeOf.get(JSON.stringify([said.benchmark, said.id]));
      if (place === undefined) throw new Error("its row is not on this page");
      const answers = asks(place).map(({ name }) => [name, said[name]])
        .filter(([, answer]) => answer !== null && answer !== undefined);
      found.push([place, checked(answers), typeof said.note === "string" ? said.note : ""]);
      reviewers.add(String(said.reviewer));
    } catch (error) {
      throw new Error(`Line ${at + 1}: ${error.message}. Nothing was imported.`);
    }
  });
  if (found.length === 0) throw new Error("The file holds no judgement.");
  if (reviewers.size > 1) throw new Error("The file holds the judgements of several reviewers. Nothing was imported.");
  return [found, [...reviewers][0]];
}

function checked(answers) {
  for (const [name, answer] of answers) {
    const known = questions.get(name).answers.some(([value]) => value === answer);
    if (!known) throw new Error(`${name} has no such answer`);
  }
  return Object.fromEntries(answers);
}
