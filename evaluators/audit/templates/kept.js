// Progress, kept in the browser where it lets a page from disk keep anything.

const KEPT = `safe-stepwise audit ${sample}`;
let keeps = true;

function keep() {
  try {
    localStorage.setItem(KEPT, JSON.stringify([byId("reviewer").value, exported("")]));
  } catch {
    keeps = false;
  }
}

/** Take up what an earlier visit kept; what is none of ours is left alone. */
function takeUp() {
  try {
    const [reviewer, lines] = JSON.parse(localStorage.getItem(KEPT) ?? '["", ""]');
    byId("reviewer").value = String(reviewer);
    if (lines) take(imported(lines)[0]);
    localStorage.setItem(KEPT, localStorage.getItem(KEPT) ?? '["", ""]');
  } catch (error) {
    keeps = !(error instanceof DOMException);
  }
}

function take(found) {
  for (const [place, answers, note] of found) judged[place] = { answers, note };
}
