"""Errors put into ideal trajectories, of every type (SAFE v1, section 3.3).

What `proposals` gives in the place of an ideal step is kept only if the checker finds exactly the
error that was meant in it, which also settles that no type comes before it in the order of checks.
Diagnosis and guidance are the checker's, who says where the text stands against the step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from builders.steps.contexts import Context, Source
from builders.steps.proposals import Injector, Proposal, Wordings
from builders.steps.rows import Refused, StepRow
from safe_stepwise.records import Feedback, Step
from safe_stepwise.steps import StepError, format_step
from safe_stepwise.store.names import INJECTED
from safe_stepwise.taxonomy import ERROR_TYPES

TRIES = 4
"""Wordings and values tried for one error at one position before it is given up."""


def inject(
    injector: Injector, ideal: Sequence[Step], teacher: str
) -> tuple[list[StepRow], list[Refused]]:
    """Rows with one error each, for every type at one of the positions where it can stand.

    ``ideal`` is a trajectory that the checker passes. What the checker does not confirm is refused,
    with what it says instead.
    """
    rows: list[StepRow] = []
    refused: list[Refused] = []
    home, q = injector.source.context, injector.question
    for error_type in ERROR_TYPES:
        for position in injector.positions(error_type.name, len(ideal)):
            proposals = injector.propose(error_type.name, position)
            made = _confirmed(home, ideal, proposals, error_type.name, position)
            previous = tuple(ideal[: position - 1])
            if isinstance(made, _Confirmed):
                rows.append(made.row(previous, teacher))
                break
            if made.reason:
                where = (q.benchmark, q.id, error_type.name, position)
                refused.append(Refused(*where, made.reason, made.text))
    return rows, refused


def meant_and_found(
    source: Source, ideal: Sequence[Step], seed: int, words: Wordings
) -> Iterator[tuple[str, str | None]]:
    """What each first proposal was meant to have, and what the checker finds in it (None: nothing).

    Nothing is left out because the checker disagrees, so this measures it.
    """
    injector = Injector(source, seed, words=words)
    for error_type in ERROR_TYPES:
        for position in range(1, len(ideal) + 1):
            for proposal in injector.propose(error_type.name, position):
                step = _well_formed(proposal, position)
                if step is not None:
                    feedback = source.checker.check(ideal[: position - 1], step)
                    yield error_type.name, None if feedback is None else feedback.error_type
                    break


def _well_formed(proposal: Proposal, position: int) -> Step | None:
    step = Step(position, " ".join(proposal.text.split()), proposal.kind)
    try:
        format_step(step)
    except StepError:
        return None
    return step


@dataclass(frozen=True, slots=True)
class _Confirmed:
    """A step with the error that was meant, and where it has it."""

    context: Context
    step: Step
    feedback: Feedback

    def row(self, previous: tuple[Step, ...], teacher: str) -> StepRow:
        here = self.context
        made = (here.question, previous, self.step, self.feedback, INJECTED, teacher)
        return StepRow(*made, here.kind, here.borrowed)


@dataclass(frozen=True, slots=True)
class _NotTaken:
    """Why no proposal was taken, "" where there was none, and the last one's text."""

    reason: str
    text: str


def _confirmed(
    home: Context,
    ideal: Sequence[Step],
    proposals: Iterator[Proposal],
    error_type: str,
    position: int,
) -> _Confirmed | _NotTaken:
    reason, text = "", ""
    for proposal in islice(proposals, TRIES):
        text = " ".join(proposal.text.split())
        step = _well_formed(proposal, position)
        context = proposal.context or home
        if proposal.context is None and text == ideal[position - 1].text:
            reason = reason or "the step is the ideal one"
        elif step is None:
            reason = reason or "the step breaks the grammar"
        else:
            feedback = context.checker.check(ideal[: position - 1], step)
            if feedback is not None and feedback.error_type == error_type:
                return _Confirmed(context, step, feedback)
            found = "abstains" if feedback is None else f"finds {feedback.error_type}"
            reason = reason or f"the checker {found}"
    return _NotTaken(reason, text)
