"""Ideal trajectories: kept only where the checker passes every step and the answer is exact."""

from __future__ import annotations

from collections.abc import Sequence

from safe_stepwise.checker import Checker
from safe_stepwise.records import Feedback, Step
from safe_stepwise.scoring import exact_match
from safe_stepwise.steps import StepError, final_answer, format_step
from safe_stepwise.taxonomy import CORRECT


class TrajectoryError(Exception):
    """A trajectory that is not kept; the message is the reason, its kind before the colon."""


def checked(checker: Checker, steps: Sequence[Step]) -> tuple[Feedback, ...]:
    """The checker's verdict on each step: all ``Correct``.

    Raises TrajectoryError for a step that breaks the grammar, that the checker finds fault with or
    can't pass, and for an answer that is not an exact match.
    """
    verdicts = []
    for number, step in enumerate(steps):
        try:
            format_step(step)
        except StepError as error:
            raise TrajectoryError(f"a step breaks the grammar: {error}") from None
        verdict = checker.check(steps[:number], step)
        if verdict is None:
            raise TrajectoryError(f"the checker can't pass a {step.kind} step: step {number + 1}")
        if verdict.error_type != CORRECT:
            raise TrajectoryError(
                f"the checker finds {verdict.error_type} in a {step.kind} step: {verdict.diagnosis}"
            )
        verdicts.append(verdict)
    question = checker.question
    accepted = [question.answer, *question.aliases]
    if exact_match(final_answer(steps[-1]), accepted, question.benchmark) < 1:
        raise TrajectoryError("the answer is no exact match")
    return tuple(verdicts)
