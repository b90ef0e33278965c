"""Read a prompting method's answer, and the sub-answers, facts and triples that it gives as support.

SG-FSM's machines answer hop by hop; with evidence (its Setting 2) every method names supporting facts
and triples, SG-FSM1 those of its sub-answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from safe_stepwise.methods import prompting, scene, sg_fsm
from safe_stepwise.methods.sg_fsm_safe import strict_fields, sub_answers
from safe_stepwise.records import ANSWERED, Attempt, Question, Trajectory

FACTS, TRIPLES = "supporting_facts", "evidences"


@dataclass(frozen=True, slots=True)
class SupportedAnswer:
    """An answer to a question with what supports it.

    ``facts`` (passage from 1, sentence from 0) and ``triples`` are None if the prompt did not ask for
    them; ``passages`` are None if the method never cites a passage.
    """

    question: Question
    trajectory: Trajectory
    sub_answers: tuple[scene.SubAnswer, ...]
    facts: tuple[tuple[int, int], ...] | None
    triples: tuple[tuple[str, str, str], ...] | None
    passages: frozenset[int] | None

    @classmethod
    def from_trajectory(cls, question: Question, trajectory: Trajectory, evidence: bool) -> "SupportedAnswer":
        """Read a trajectory; ``evidence``: facts and triples were asked for. Only an answer that counts has any."""
        answers, last = sub_answers(trajectory.attempts), _last(trajectory.attempts)
        facts: Sequence[Sequence[int]] | None = None
        triples: Sequence[Sequence[str]] | None = None
        if evidence:
            facts = last.get(FACTS, [(find.passage, n) for find in answers for n in find.sentences])
            triples = last.get(TRIPLES, [find.evidence for find in answers if find.evidence])
            if trajectory.stop_reason != ANSWERED:
                facts = triples = ()
        cited = {find.passage for find in answers} | {page for page, _ in facts or ()}
        return cls(
            question,
            trajectory,
            answers,
            None if facts is None else tuple((page, sentence) for page, sentence in facts),
            None if triples is None else tuple((h, r, t) for h, r, t in triples),
            frozenset(cited) if evidence or is_hop_by_hop(trajectory) else None,
        )

    @property
    def answer(self) -> str:
        """The answer of strictly read replies."""
        return self.trajectory.answer

    @property
    def salvaged(self) -> str:
        """The answer if salvaged replies also count."""
        return prompting.salvaged_answer(self.trajectory)

    @property
    def titles(self) -> list[str]:
        """The passages' titles in the order of their numbers: the question's, then those that verdicts retrieved."""
        retrieved = (page for attempt in self.trajectory.attempts for page in attempt.retrieved)
        return [page.title for page in (*self.question.passages, *retrieved)]

    @property
    def cited_facts(self) -> list[tuple[str, int]]:
        """The supporting facts in HotpotQA's form: titles instead of numbers."""
        titles = self.titles
        return [(titles[page - 1], sentence) for page, sentence in self.facts or ()]


def is_hop_by_hop(trajectory: Trajectory) -> bool:
    """Whether a trajectory's method gives sub-answers before the answer."""
    return any(attempt.state == sg_fsm.DECOMPOSE for attempt in trajectory.attempts)


def _last(attempts: Sequence[Attempt]) -> Mapping[str, Any]:
    if any(attempt.state == prompting.ANSWERING for attempt in attempts):
        return prompting.winning_fields(attempts)
    return next((reply for reply in reversed([strict_fields(attempt) for attempt in attempts]) if FACTS in reply), {})
