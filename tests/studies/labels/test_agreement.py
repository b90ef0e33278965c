from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.records import NO_NOISE, NOISE_TYPES
from safe_stepwise.store.agreement import Score
from studies.labels.agreement import build_score_rows, score_agreement, score_noise_types


def test_a_score() -> None:
    score = Score("noise", hits=3, gold=4, predicted=6)
    assert (score.precision, score.recall, score.f1) == (0.5, 0.75, 0.6)


@pytest.mark.parametrize("score", [Score("x", 0, 0, 0), Score("x", 0, 4, 0), Score("x", 0, 0, 4)])
def test_undefined_scores_are_zero(score: Score) -> None:
    assert score.precision == score.recall == score.f1 == 0.0


def test_only_rows_that_both_label_count() -> None:
    true = {1: True, 2: False, 3: True, 4: True}
    found = {1: True, 2: True, 3: False, 9: True}
    assert score_agreement(true, found, "noise") == Score("noise", hits=1, gold=2, predicted=2)
    assert score_agreement({}, found, "noise") == Score("noise", 0, 0, 0)


@given(st.dictionaries(st.integers(0, 9), st.booleans()), st.dictionaries(st.integers(0, 9), st.booleans()))
def test_swapping_the_sides_swaps_precision_and_recall(true: dict[int, bool], found: dict[int, bool]) -> None:
    one, other = score_agreement(true, found, "noise"), score_agreement(found, true, "noise")
    assert (one.precision, one.recall, one.f1) == (other.recall, other.precision, other.f1)
    assert 0 <= one.hits <= min(one.gold, one.predicted)
    if one.precision and one.recall:
        harmonic = 2 / (1 / one.precision + 1 / one.recall)
        assert one.f1 == pytest.approx(harmonic)


def test_by_noise_type() -> None:
    true = {1: "none", 2: "wrong_answer", 3: "missing_evidence", 4: "unparsed", 5: "wrong_answer"}
    found = {1: "wrong_answer", 2: "wrong_answer", 3: "none", 4: "none", 5: "entity_confusion"}
    scores = {score.name: score for score in score_noise_types(true, found)}
    assert list(scores) == [
        "unverifiable", "none", "missing_evidence", "entity_confusion", "wrong_answer", "unparsed",
    ]  # fmt: skip
    # of the wrong kind, but unverifiable all the same
    assert scores["unverifiable"] == Score("unverifiable", hits=2, gold=3, predicted=3)
    assert scores["wrong_answer"] == Score("wrong_answer", hits=1, gold=2, predicted=2)
    assert scores["none"] == Score("none", hits=0, gold=1, predicted=2)
    assert scores["unparsed"] == Score("unparsed", hits=0, gold=1, predicted=0)
    assert scores["entity_confusion"] == Score("entity_confusion", hits=0, gold=0, predicted=1)


@pytest.mark.parametrize("name", NO_NOISE)
def test_sound_rows_are_not_unverifiable(name: str) -> None:
    assert score_noise_types({1: name}, {1: name})[0] == Score("unverifiable", 0, 0, 0)


@given(st.dictionaries(st.integers(0, 9), st.sampled_from(NOISE_TYPES), min_size=1))
def test_labels_agree_with_themselves(labels: dict[int, str]) -> None:
    for score in score_noise_types(labels, labels):
        assert score.hits == score.gold == score.predicted


def test_rows_of_a_table() -> None:
    assert build_score_rows([Score("noise", 1, 3, 2), Score("none", 0, 0, 2), Score("rest", 0, 0, 0)]) == [
        ("noise", 3, 2, "0.500", "0.333", "0.400"),
        ("none", 0, 2, "0.000", "-", "0.000"),
        ("rest", 0, 0, "-", "-", "-"),
    ]
