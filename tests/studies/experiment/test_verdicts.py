"""Measures of verdicts and their differences, against scikit-learn and by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, recall_score

from evaluators.verifier.step_set import StepCase
from safe_stepwise.taxonomy import CORRECT, EVIDENCE
from studies.experiment.verdicts import (
    ERROR_F1,
    EVIDENCE_BALANCED,
    compute_measure,
    compute_recall,
    estimate_gain,
    label_by_probe,
    repeat_label,
)
from tests.evaluators.verifier.step_rows import row, write_set
from tests.studies.experiment.made import step

LABELS = st.sampled_from([*EVIDENCE, "Logical Fallacy"])


@given(st.lists(st.tuples(LABELS, LABELS, st.booleans()), min_size=1, max_size=40))
def test_measures_are_scikit_learn_s(rows: list[tuple[str, str, bool]]) -> None:
    steps = [step(n, gold, attribution=at) for n, (gold, _, at) in enumerate(rows)]
    said = {f"s{n}": label for n, (_, label, _) in enumerate(rows)}
    wrong = [gold != CORRECT for gold, _, _ in rows]
    flagged = [label != CORRECT for _, label, _ in rows]
    found = compute_measure(steps, said, ERROR_F1)
    assert found == pytest.approx(f1_score(wrong, flagged, zero_division=0.0))
    pairs = [(gold, label) for gold, label, at in rows if at and gold in EVIDENCE]
    balanced = compute_measure(steps, said, EVIDENCE_BALANCED)
    if not pairs:
        assert math.isnan(balanced)
        return
    gold, told = zip(*pairs, strict=True)
    present = sorted(set(gold))
    expected = recall_score(gold, told, labels=present, average="macro", zero_division=0.0)
    assert balanced == pytest.approx(expected)
    each = [compute_recall(steps, said, label) for label in present]
    assert np.mean(each) == pytest.approx(expected)


def test_a_reply_that_could_not_be_read_raises_no_alarm() -> None:
    steps = [step(0, CORRECT), step(1, "Contradictory")]
    assert compute_measure(steps, {"s0": "unparsed", "s1": "Contradictory"}, ERROR_F1) == 1.0
    assert compute_measure(steps, {"s0": CORRECT, "s1": "unparsed"}, ERROR_F1) == 0.0


@given(st.lists(st.tuples(LABELS, LABELS, LABELS), min_size=2, max_size=30))
def test_a_difference_turns_its_sign_with_its_sides(rows: list[tuple[str, str, str]]) -> None:
    steps = [step(n, gold) for n, (gold, _, _) in enumerate(rows)]
    one, other = ({f"s{n}": row[at] for n, row in enumerate(rows)} for at in (1, 2))
    found, turned = (estimate_gain(steps, *pair, ERROR_F1) for pair in ((one, other), (other, one)))
    assert found.value == pytest.approx(-turned.value)
    assert found.low <= found.value <= found.high
    assert compute_measure(steps, one, ERROR_F1) - compute_measure(steps, other, ERROR_F1) == found.value
    alike = estimate_gain(steps, one, one, ERROR_F1)
    assert (alike.value, alike.low, alike.high) == (0.0, 0.0, 0.0)


def test_questions_are_drawn_and_not_their_steps() -> None:
    """Of two questions one is always missed: a draw has none, one or two of it."""
    steps = [step(n, "Contradictory", "a" if n < 50 else "b") for n in range(100)]
    said = {one.id: one.gold if n < 50 else CORRECT for n, one in enumerate(steps)}
    found = estimate_gain(steps, said, repeat_label(steps, CORRECT), ERROR_F1)
    assert found.value == pytest.approx(2 / 3)
    assert (found.low, found.high) == (0.0, 1.0)  # over steps it would be .57 to .75


def test_the_probe_learns_from_train_and_is_asked_of_test(tmp_path: Path) -> None:
    """The two disagree on every word, so who had learnt from test would be right."""
    kinds = (CORRECT, "Contradictory")
    texts = [("Step 1: before (Attribution)", f"Step 2: {x} (Attribution)") for x in ("pear", "apple")]
    rows = {
        split: [row(f"{split}{n}", texts[n % 2], gold[n % 2]) for n in range(8)]
        for split, gold in (("train", kinds), ("test", kinds[::-1]))
    }
    write_set(tmp_path, **rows)

    def learnt(told: Sequence[str], gold: Sequence[str], asked: Sequence[str]) -> list[str]:
        assert {*told} == {*asked} == {*map("\n".join, texts)}
        seen = dict(zip(told, gold, strict=True))
        return [seen[text] for text in asked]

    assert label_by_probe(tmp_path, learnt) == {f"test{n}": "error" if n % 2 else CORRECT for n in range(8)}


def test_no_draw_of_nothing_is_a_number() -> None:
    steps: list[StepCase] = [step(0, "Logical Fallacy", attribution=False)]
    found = estimate_gain(steps, repeat_label(steps, CORRECT), repeat_label(steps, "error"), EVIDENCE_BALANCED)
    assert math.isnan(found.value)
