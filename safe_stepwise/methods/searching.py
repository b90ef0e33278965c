"""Searches for a question's missing evidence, and decides when to stop (SAFE v2, finding 5).

The papers don't say what happens to a step whose evidence can't be found. Our rule: no query is run twice. After a
search without new passages, the generator has one more attempt at the step and is told so. If a second search is also
in vain, or the step's retries are used up after an earlier search, the question ends with the call for the answer
(`NO_EVIDENCE`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from safe_stepwise.methods.limits import Search
from safe_stepwise.records import Attempt, Feedback, Passage, Question
from safe_stepwise.taxonomy import MISSING_EVIDENCE

RETRIEVED = 3
"""Maximum passages that a query adds (SAFE v2, finding 5)."""

NO_EVIDENCE = "no_evidence"
"""The stop reason of a question whose missing evidence was not found."""


@dataclass(slots=True)
class Searching:
    """The state of the searches for one question and its next step; without a ``search`` there are none."""

    search: Search | None
    queries: set[str] = field(default_factory=set)
    """All queries so far, case-folded."""
    missing: int = 0
    """Number of attempts at the next step with missing evidence."""
    in_vain: int = 0
    """Number of those attempts whose search found nothing new."""
    is_over: bool = False

    def run_query(self, question: Question, verdict: Feedback | None, is_last: bool) -> tuple[Passage, ...]:
        """Return a query's new passages; ``is_over`` notes the last search; ``is_last``: no retry is left."""
        if self.search is None or verdict is None or verdict.error_type != MISSING_EVIDENCE:
            return ()
        query = " ".join((verdict.query or "").split())
        passages: tuple[Passage, ...] = ()
        if query and query.casefold() not in self.queries:
            self.queries.add(query.casefold())
            passages = retrieve_new(self.search, query, question.passages)
        self.missing += 1
        self.in_vain += not passages
        self.is_over = (not passages and self.in_vain > 1) or (is_last and self.missing > 1)
        return passages

    def reset_after(self, verdict: Feedback | None) -> None:
        """Reset the counts after an accepted step, unless its evidence is still missing."""
        if verdict is None or verdict.error_type != MISSING_EVIDENCE:
            self.missing = self.in_vain = 0


def add_retrieved(question: Question, attempts: Iterable[Attempt]) -> Question:
    """Return a question with the passages that attempts at it retrieved behind its own."""
    retrieved = (page for attempt in attempts for page in attempt.retrieved)
    return replace(question, passages=(*question.passages, *retrieved))


def retrieve_new(search: Search, query: str, at_hand: Sequence[Passage], top: int = RETRIEVED) -> tuple[Passage, ...]:
    """Return the passages among the ``top`` first results of a query that are not in ``at_hand``, each once."""
    seen_passages = {(page.title, page.text) for page in at_hand}
    results: dict[tuple[str, str], Passage] = {}
    for page in search(query)[:top]:
        results.setdefault((page.title, page.text), page)
    return tuple(page for content, page in results.items() if content not in seen_passages)


def note_vain_search(verdict: Feedback, passages: Sequence[Passage] = ()) -> Feedback:
    """Tell the generator in a verdict that its search found nothing new; other verdicts stay as they are.

    >>> said = Feedback("Missing Evidence", "No passage says it.", "Search for Isk.", "Isk")
    >>> print(note_vain_search(said).guidance)
    The search for “Isk” brought nothing new: go on with what the passages at hand do state.
    """
    if verdict.error_type != MISSING_EVIDENCE or passages:
        return verdict
    vain = f"The search for “{verdict.query}” brought nothing new"
    guidance = f"{vain}: go on with what the passages at hand do state."
    return replace(verdict, diagnosis=f"{verdict.diagnosis} {vain}.".strip(), guidance=guidance)
