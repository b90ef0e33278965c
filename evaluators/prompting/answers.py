"""What a prompting method's trajectory says: the answer, and what it says that it rests on.

SG-FSM's machines say what they found hop by hop; with evidence (its Setting 2) every method names
supporting facts and triples, SG-FSM1 those of its finds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from safe_stepwise.methods.asking import ANSWERING, salvaged_answer, voted
from safe_stepwise.methods.scene import Found
from safe_stepwise.methods.sg_fsm import DECOMPOSE, DONE, REVISED_IN, SEARCH, TERMINATE
from safe_stepwise.methods.sg_fsm_safe import FIND, GUARDED
from safe_stepwise.records import ANSWERED, Attempt, Question, Trajectory

FACTS, TRIPLES = "supporting_facts", "evidences"
"""Fields of a reply with evidence."""


@dataclass(frozen=True, slots=True)
class Said:
    """What stands behind an answer to a question.

    ``facts`` (passage from 1, sentence from 0) and ``triples`` are None where nobody asked for
    them; ``passages`` are None where the method never says where anything stands.
    """

    question: Question
    trajectory: Trajectory
    finds: tuple[Found, ...]
    facts: tuple[tuple[int, int], ...] | None
    triples: tuple[tuple[str, str, str], ...] | None
    passages: frozenset[int] | None

    @classmethod
    def of(cls, question: Question, trajectory: Trajectory, evidence: bool) -> "Said":
        """What a trajectory says; ``evidence``: whether facts and triples were asked for.

        What was withdrawn, or could not be read, rests on nothing.
        """
        found, last = finds(trajectory.attempts), _last(trajectory.attempts)
        facts: Sequence[Sequence[int]] | None = None
        triples: Sequence[Sequence[str]] | None = None
        if evidence:
            facts = last.get(FACTS, [(find.passage, n) for find in found for n in find.sentences])
            triples = last.get(TRIPLES, [find.evidence for find in found if find.evidence])
            if trajectory.stop_reason != ANSWERED:
                facts = triples = ()
        cited = {find.passage for find in found} | {page for page, _ in facts or ()}
        return cls(
            question,
            trajectory,
            found,
            None if facts is None else tuple((page, sentence) for page, sentence in facts),
            None if triples is None else tuple((h, r, t) for h, r, t in triples),
            frozenset(cited) if evidence or _is_hop_by_hop(trajectory) else None,
        )

    @property
    def answer(self) -> str:
        """The strict one."""
        return self.trajectory.answer

    @property
    def salvaged(self) -> str:
        """The answer with replies that only salvaging could read."""
        return salvaged_answer(self.trajectory)

    @property
    def is_hop_by_hop(self) -> bool:
        """Whether it says what it found on its way."""
        return _is_hop_by_hop(self.trajectory)

    @property
    def titles(self) -> list[str]:
        """Those of the passages by number, of those too that verdicts brought in behind the question's own."""
        retrieved = (page for attempt in self.trajectory.attempts for page in attempt.retrieved)
        return [page.title for page in (*self.question.passages, *retrieved)]

    @property
    def cited_facts(self) -> list[tuple[str, int]]:
        """Supporting facts as HotpotQA has them: titles instead of numbers."""
        titles = self.titles
        return [(titles[page - 1], sentence) for page, sentence in self.facts or ()]


def _is_hop_by_hop(trajectory: Trajectory) -> bool:
    return any(attempt.state == DECOMPOSE for attempt in trajectory.attempts)


def _last(attempts: Sequence[Attempt]) -> Mapping[str, Any]:
    if any(attempt.state == ANSWERING for attempt in attempts):
        return voted(attempts)
    values = [_strict(attempt) for attempt in attempts]
    return next((value for value in reversed(values) if FACTS in value), {})


def finds(attempts: Sequence[Attempt]) -> tuple[Found, ...]:
    """What a machine found and did not take back, in its order; other methods find nothing."""
    found: list[Found] = []
    asked = current = ""
    for attempt in attempts:
        value = _strict(attempt)
        if attempt.state == FIND:
            if _is_taken_back(attempt, found):
                found.pop()
        elif not value:
            continue
        elif attempt.state in (DECOMPOSE, REVISED_IN[DECOMPOSE]):
            asked = current if value["simple"] else str(value["subquestion"])
        elif attempt.state in (SEARCH, REVISED_IN[SEARCH]):
            support = tuple(value.get("sentences", ())), tuple(value.get("evidence", ()))
            found.append(Found(asked or str(value["question"]), value["passage"], value["answer"], *support))
        elif attempt.state in (TERMINATE, REVISED_IN[TERMINATE]):
            current = str(value["question"] or current)
    return tuple(found)


def _is_taken_back(attempt: Attempt, found: Sequence[Found]) -> bool:
    if attempt.feedback and GUARDED.get(attempt.feedback.error_type) == DONE:
        return len(found) > 1  # one that is not needed is left out, if there are others
    return attempt.next_state in (SEARCH, DECOMPOSE) and bool(found)


def _strict(attempt: Attempt) -> Mapping[str, Any]:
    """The fields that were read in a reply that could be read strictly."""
    read = attempt.read
    is_strict = isinstance(read, dict) and read.get("form") == "strict"
    return read["value"] if is_strict else {}
