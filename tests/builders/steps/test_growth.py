"""Readers of steps and remarks take time in proportion to their texts, whatever these are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from builders.steps.remarks import check_remarks_on_sound_step
from builders.steps.rewriting import citations_in
from builders.steps.rows import ReplyStep, StepRefused
from builders.steps.values import numbers_in, values_in
from builders.steps.witness import MAX_STEP_CHARS, bears_out
from safe_stepwise.checking.plans import make_plan
from safe_stepwise.records import Passage, Question, Step, Triple
from safe_stepwise.taxonomy import labels
from tests.growth import UNITS, exponent, too_slow

PAGES = (
    Passage("Dune Rain", ("Dune Rain was directed by Ors Velt.",), True),
    Passage("Ors Velt", ("Ors Velt was born in Oru.",), True),
)
PATH = (Triple("Dune Rain", "director", "Ors Velt", 1), Triple("Ors Velt", "place of birth", "Oru", 2))
CHAIN = Question("q", "b", "train", "Where was its director born?", "Oru", passages=PAGES)
PLAN = make_plan(CHAIN, PATH, PATH)
FIRST = Step(1, "According to Passage 1, Dune Rain was directed by Ors Velt.", "Attribution")


def witnessed(text: str) -> None:
    step = Step(2, text[:MAX_STEP_CHARS], "Attribution")
    for label in labels():
        bears_out(label, PLAN, CHAIN, (FIRST,), step)


def sound(text: str) -> None:
    for said in (ReplyStep("", text, "Go on."), ReplyStep("", "Passage 1 says it.", text)):
        with suppress(StepRefused):
            check_remarks_on_sound_step(CHAIN, (FIRST,), 1, said)


@pytest.mark.parametrize("reader", [values_in, numbers_in, citations_in, sound])
def test_twice_the_text_takes_twice_the_time(reader: Callable[[str], Any]) -> None:
    assert too_slow(reader) == []


def test_the_witness_reads_no_more_than_a_step_and_soon() -> None:
    """Its patterns look ahead, so what is longer than any step is not looked at."""

    def work(size: int) -> None:
        for unit in UNITS:
            witnessed(unit * (size // len(unit)))

    assert exponent(work, MAX_STEP_CHARS, bound=2.5) <= 2.5
    long = Step(2, "“A; " * MAX_STEP_CHARS, "Attribution")
    assert not any(bears_out(label, PLAN, CHAIN, (FIRST,), long) for label in labels())
