"""Outcomes whose steps are told, of the two hops of `tests.makers.prompting`."""

from __future__ import annotations

from typing import Any

from evaluators.faithfulness import measuring
from evaluators.outcomes import Outcome
from safe_stepwise.records import Attempt, Feedback, Question, Step, Trajectory
from safe_stepwise.scoring import exact_match
from safe_stepwise.steps import format_step
from tests.makers.outcomes import outcome
from tests.makers.prompting import question

FIRST = "According to Passage 1, Dune Rain was directed by Ors Velt."
SECOND = "According to Passage 2, Ors Velt was born in Oru."
BESIDE = "According to Passage 3, Low Tide was shot in Kel."
"""True, and of no use."""
CORRECT = Feedback("Correct", "It is so.", "Go on.")

measure = measuring.measure

Asked = tuple[Outcome, Question]


def told(id_: str, *texts: str, answer: str = "Oru", **changes: Any) -> Asked:
    """A question answered by SAFE in these steps, each of which the verifier accepted."""
    asked = question(id_=id_)
    kinds = changes.pop("kinds", {})
    steps = tuple(Step(n, t, kinds.get(n, "Attribution")) for n, t in enumerate(texts, 1))
    tries = tuple(Attempt(s.number, format_step(s), CORRECT, True) for s in steps)
    stop = changes.pop("stop", "answered" if answer else "withdrawn")
    end = (Step(len(steps) + 1, f"####ANSWER: {answer}", "Final Answer"),) if answer else ()
    made = Trajectory(id_, "safe", (*steps, *end) if steps else (), tries, answer, stop)
    score = exact_match(answer, asked.accepted)
    found = outcome(id_, score=score, benchmark=asked.benchmark, trajectory=made, **changes)
    return found, asked


def six(**changes: Any) -> list[Asked]:
    """Right by a faithful chain, right by another, wrong; unstructured, abstained, failed."""
    return [
        told("q1", FIRST, SECOND, **changes),
        told("q2", BESIDE, SECOND, **changes),
        told("q3", BESIDE, answer="Kel", **changes),
        told("q4", **changes),
        told("q5", FIRST, answer="", **changes),
        told("q6", answer="", stop="failed", **changes),
    ]
