"""Hard cases become rows: taken from the patterns in turn, each with a verdict that is right."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from builders.steps.cases import Case, in_turn
from builders.steps.features import check_row
from builders.steps.refined import line_of
from builders.steps.rows import Refused, StepRow
from safe_stepwise.engines.base import EngineError
from safe_stepwise.engines.client import Client
from safe_stepwise.feedback import FeedbackError, parse_feedback
from safe_stepwise.methods.scene import Scene
from safe_stepwise.methods.verifier import prompt_digest, verifier_request
from safe_stepwise.records import Feedback

ANNOTATIONS = "annotations"


async def relabelled(
    cases: Sequence[Case], teacher: Client | None, wanted: int
) -> list[StepRow | Refused]:
    """Up to ``wanted`` rows, from the patterns in turn, and the cases that gave none."""
    made: list[StepRow | Refused] = []
    left = iter(in_turn(cases))
    missing = wanted
    while missing and (batch := list(islice(left, missing))):
        # A teacher's request fails, is cached and retried on its own, so a batch may be large.
        made += await asyncio.gather(*(_relabel(case, teacher) for case in batch))
        missing = wanted - sum(isinstance(one, StepRow) for one in made)
    return made


async def _relabel(case: Case, teacher: Client | None) -> StepRow | Refused:
    """The row of a case: with the checker's verdict, or a teacher's that agrees with it."""
    try:
        feedback = case.found if teacher is None else await _verdict(case, teacher)
    except EngineError as error:
        return _refused(case, f"the teacher gave no reply: {error}")
    except FeedbackError as error:
        return _refused(case, f"the teacher's reply cannot be read: {error}")
    if feedback.error_type != case.found.error_type:
        return _refused(case, f"teacher and checker differ: {feedback.error_type}")
    row = case.row(feedback, teacher_name(teacher))
    try:
        check_row(row)
        line_of(row).encode()
    except ValueError as error:
        return _refused(case, f"not a valid row: {error}")
    return row


async def _verdict(case: Case, teacher: Client) -> Feedback:
    q = case.question
    request = verifier_request(q.question, q.passages, case.previous, case.step)
    asked = replace(request, scene=Scene(q, previous=case.previous, step=case.step))
    return parse_feedback((await teacher.ask(asked)).text)


def _refused(case: Case, reason: str) -> Refused:
    q, label = case.question, case.found.error_type
    return Refused(q.benchmark, q.id, label, case.step.number, reason, case.step.text)


def teacher_name(teacher: Client | None) -> str:
    """What lands in the ``teacher`` column."""
    if teacher is None:
        return ANNOTATIONS
    return f"{teacher.engine.name} prompts {prompt_digest()[:12]}"
