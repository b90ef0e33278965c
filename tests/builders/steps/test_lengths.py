from __future__ import annotations

import pytest

from builders.steps.configs import check_lengths
from builders.steps.rows import StepRow
from safe_stepwise.errors import UserError
from safe_stepwise.records import Feedback, Passage, Question, Step

SAID = Feedback("Correct", "Passage 1 says so.", "Go on.")


def row(number: int, length: int = 100) -> StepRow:
    question = Question(f"q{number}", "synthetic", "train", "Who?", "x",
                        passages=(Passage("Oru", ("é" * length,), True),))  # fmt: skip
    return StepRow(question, (), Step(1, f"Text {number}.", "Logical"), SAID, "ideal", "t")


def test_bytes_bound_what_fits() -> None:
    found = check_lengths([row(1), row(2)], 8192)
    assert found["method"] == "bytes"
    assert 200 < found["longest"] <= 8192


def test_lengths_are_estimated_where_bytes_do_not_fit() -> None:
    found = check_lengths([row(1, 4000)], 8192)
    assert found["method"] == "estimate"
    assert found["longest"] <= 8192


def test_rows_that_are_too_long_are_named_ten_at_most() -> None:
    rows = [row(n, 20_000) for n in range(14)]
    with pytest.raises(UserError, match="and 4 more") as caught:
        check_lengths([row(99), *rows], 8192)
    named = sorted(r.id for r in rows)[:10]
    assert all(id_ in str(caught.value) for id_ in named)
    assert row(99).id not in str(caught.value)
