"""How often a search brings back a passage that was taken away (SAFE v2, finding 5).

Of each question what ``missing_evidence`` takes away of it is taken away, and searched for by the
query that the row has there: subject and relation, or a title, never the value. The passage is
found if it is among those that the loop takes.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from builders.steps.missing_evidence import without_evidence
from builders.verified.questions import VerifiedQuestion
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.verification import verify
from safe_stepwise.checking import plans, writing
from safe_stepwise.checking.checker import Checker
from safe_stepwise.methods import limits, searching
from safe_stepwise.records import Passage, Question

NOISE, NO_PLAN, STATED = "not verified", "no plan", "each fact is stated twice, or cannot be asked"
"""Why nothing is taken away of a question."""


@dataclass(frozen=True, slots=True)
class Recall:
    """How many of the passages searched for are among the first ``top`` found."""

    top: int
    searched: int
    found: int
    benchmarks: Mapping[str, Mapping[str, int]]
    """Both counts by benchmark."""
    left_out: Mapping[str, int]
    """Questions of which nothing was taken away, by reason."""

    @property
    def share(self) -> float | None:
        """Recall (0-1); None where nothing was searched for."""
        return self.found / self.searched if self.searched else None


def recall(questions: Iterable[Question], search: limits.Search, seed: int, on_done: Callable[[], object]) -> Recall:
    """The recall of a search over some questions; ``on_done`` hears of each."""
    searched, found, left_out = Counter[str](), Counter[str](), Counter[str]()
    for question in questions:
        taken = taken_away(question, seed)
        if isinstance(taken, str):
            left_out[taken] += 1
        else:
            query, gone = taken
            top = {(page.title, page.text) for page in search(query)[: searching.RETRIEVED]}
            searched[question.benchmark] += 1
            found[question.benchmark] += (gone.title, gone.text) in top
        on_done()
    return Recall(
        top=searching.RETRIEVED,
        searched=searched.total(),
        found=found.total(),
        benchmarks={name: {"searched": searched[name], "found": found[name]} for name in sorted(searched)},
        left_out=dict(sorted(left_out.items())),
    )


def taken_away(question: Question, seed: int) -> tuple[str, Passage] | str:
    """The query of a question's row of ``missing_evidence`` and the passage that lacks there, or why it has none."""
    label = asyncio.run(verify(question, AnnotationsTeacher()))
    if label.unverifiable:
        return NOISE
    try:
        shown, label = VerifiedQuestion(question, label).shown(seed)
        checker = Checker(shown, label.reasoning_path, label.knowledge_graph)
    except (plans.PlanError, ValueError):
        return NO_PLAN
    rows = without_evidence(checker, writing.write_trajectory(checker, seed), seed, "")
    gone = [page for page in shown.passages if page not in rows[0].question.passages] if rows else []
    return (rows[0].feedback.query or "", gone[0]) if gone else STATED
