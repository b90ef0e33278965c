"""Ideal trajectories: kept only where the checker passes every step and the answer is exact."""

from collections.abc import Sequence

from builders.steps.rows import TrajectoryError
from safe_stepwise.checking.checker import Checker
from safe_stepwise.records import Feedback, Question, Step
from safe_stepwise.scoring import exact_match
from safe_stepwise.steps import StepError, final_answer, format_step
from safe_stepwise.taxonomy import CORRECT


def checked(checker: Checker, steps: Sequence[Step]) -> tuple[Feedback, ...]:
    """The checker's verdict on each step: all ``Correct``.

    Raises TrajectoryError for a plan with a fact that its passage does not state, for a step that
    breaks the grammar, that the checker finds fault with or can't pass, and for an answer that is
    not an exact match.
    """
    for item in checker.claims.facts:
        if not checker.claims.is_grounded(item):
            raise TrajectoryError(f"a fact that its passage does not state: {item.triples[0]}")
    verdicts = []
    for number, step in enumerate(steps):
        _well_formed(step)
        verdict = checker.check(steps[:number], step)
        if verdict is None:
            raise TrajectoryError(f"the checker can't pass a {step.kind} step: step {number + 1}")
        if verdict.error_type != CORRECT:
            raise TrajectoryError(f"the checker finds {verdict.error_type} in a {step.kind} step: {verdict.diagnosis}")
        verdicts.append(verdict)
    _answered(checker.question, steps)
    return tuple(verdicts)


def trusted(question: Question, steps: Sequence[Step]) -> None:
    """Raise TrajectoryError for a step that breaks the grammar, and for an answer that is not an
    exact match: all that can be checked where there is no plan.
    """
    for step in steps:
        _well_formed(step)
    _answered(question, steps)


def _well_formed(step: Step) -> None:
    try:
        format_step(step)
    except StepError as error:
        raise TrajectoryError(f"a step breaks the grammar: {error}") from None


def _answered(question: Question, steps: Sequence[Step]) -> None:
    if exact_match(final_answer(steps[-1]), question.accepted) < 1:
        raise TrajectoryError("the answer is no exact match")
