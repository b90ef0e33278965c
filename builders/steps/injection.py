"""Errors put into ideal trajectories: every type, tried at every position (SAFE v1, section 3.3).

What `proposals` gives in the place of an ideal step is kept only if the checker finds exactly the
error that was meant in it, which also settles that no type comes before it in the order of checks.
Diagnosis and guidance are the checker's, who says where the text stands against the step.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

import yaml

from builders.steps.proposals import Injector, Proposal, Wordings
from builders.steps.rows import Refused, StepRow
from safe_stepwise.checking.checker import Checker
from safe_stepwise.records import Feedback, Step
from safe_stepwise.steps import StepError, format_step
from safe_stepwise.store.names import INJECTED
from safe_stepwise.taxonomy import ERROR_TYPES

TRIES = 4
"""Wordings and values tried for one error at one position before it is given up."""


@cache
def wordings() -> Wordings:
    """The wordings of errors, by type and way of going wrong (``injections.yaml``)."""
    text = Path(__file__).with_name("injections.yaml").read_text(encoding="utf-8")
    loaded: dict[str, dict[str, list[str]]] = yaml.safe_load(text)
    return loaded


def inject(
    checker: Checker, ideal: Sequence[Step], seed: int, teacher: str, words: Wordings | None = None
) -> tuple[list[StepRow], list[Refused]]:
    """Rows with one error each, for every type and position where one can be made.

    ``ideal`` is a trajectory that the checker passes. What the checker does not confirm is refused,
    with what it says instead.
    """
    rows: list[StepRow] = []
    refused: list[Refused] = []
    injector = Injector(checker.claims, seed, words or wordings())
    for error_type in ERROR_TYPES:
        for position in range(1, len(ideal) + 1):
            proposals = injector.propose(error_type.name, position)
            made, reason, text = _confirmed(checker, ideal, proposals, error_type.name, position)
            q, previous = checker.question, tuple(ideal[: position - 1])
            if made is not None:
                rows.append(StepRow(q, previous, *made, INJECTED, teacher))
            elif reason:
                refused.append(Refused(q.benchmark, q.id, error_type.name, position, reason, text))
    return rows, refused


def meant_and_found(
    checker: Checker, ideal: Sequence[Step], seed: int, words: Wordings
) -> Iterator[tuple[str, str | None]]:
    """What each first proposal was meant to have, and what the checker finds in it (None: nothing).

    Nothing is left out because the checker disagrees, so this measures it.
    """
    injector = Injector(checker.claims, seed, words)
    for error_type in ERROR_TYPES:
        for position in range(1, len(ideal) + 1):
            for proposal in injector.propose(error_type.name, position):
                step = _well_formed(proposal, position)
                if step is not None:
                    feedback = checker.check(ideal[: position - 1], step)
                    yield error_type.name, None if feedback is None else feedback.error_type
                    break


def _well_formed(proposal: Proposal, position: int) -> Step | None:
    step = Step(position, " ".join(proposal.text.split()), proposal.kind)
    try:
        format_step(step)
    except StepError:
        return None
    return step


def _confirmed(
    checker: Checker,
    ideal: Sequence[Step],
    proposals: Iterator[Proposal],
    error_type: str,
    position: int,
) -> tuple[tuple[Step, Feedback] | None, str, str]:
    """A step with its feedback, or why no proposal was taken ("" where there was none)."""
    reason, text = "", ""
    for proposal in islice(proposals, TRIES):
        text = " ".join(proposal.text.split())
        step = _well_formed(proposal, position)
        if text == ideal[position - 1].text:
            reason = reason or "the step is the ideal one"
        elif step is None:
            reason = reason or "the step breaks the grammar"
        else:
            feedback = checker.check(ideal[: position - 1], step)
            if feedback is not None and feedback.error_type == error_type:
                return (step, feedback), "", ""
            found = "abstains" if feedback is None else f"finds {feedback.error_type}"
            reason = reason or f"the checker {found}"
    return None, reason, text
