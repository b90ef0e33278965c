"""Intervals and tests against values worked out by hand, or by other means."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.comparison import significance as stats


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("wins", "losses", "p"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (4, 4, 1.0),
        (6, 0, 2 / 64),
        (8, 2, 2 * (1 + 10 + 45) / 1024),
        (5, 16, 0.0266037),  # 2 × BinomCDF(5; 21, ½), from a table
    ],
)
def test_mcnemar_is_the_binomial(wins: int, losses: int, p: float) -> None:
    assert stats.mcnemar(wins, losses) == pytest.approx(p, rel=1e-5)
    assert stats.mcnemar(losses, wins) == stats.mcnemar(wins, losses)


def test_mcnemar_of_many() -> None:
    assert 0 < stats.mcnemar(1_000, 2_000) < 1e-50
    assert stats.mcnemar(0, 2_000) == 0.0  # less than a float can hold


def test_holm() -> None:
    assert stats.holm([]) == []
    assert stats.holm([0.02]) == [0.02]
    assert stats.holm([0.5, 0.01, 0.04, 0.03]) == pytest.approx([0.5, 0.04, 0.09, 0.09])


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_keeps_the_order_and_never_lowers(p_values: list[float]) -> None:
    adjusted = stats.holm(p_values)
    assert all(p <= a <= 1 for p, a in zip(p_values, adjusted, strict=True))
    for p, a in zip(p_values, adjusted, strict=True):
        assert all(a <= b for q, b in zip(p_values, adjusted, strict=True) if p < q)


def test_sign_flips_are_mcnemar_where_all_differences_are_one() -> None:
    differences = np.array([[1.0]] * 8 + [[-1.0]] * 2 + [[0.0]] * 20)
    flipped = stats.flipped_means(differences, rng(), 20_000)
    p = stats.flip_test(6 / 30, flipped[:, 0])
    assert p == pytest.approx(stats.mcnemar(8, 2), abs=0.01)
    assert stats.flip_test(-6 / 30, flipped[:, 0]) == p


def test_sign_flips_of_a_few_are_all_of_them() -> None:
    differences = np.array([[0.3], [0.2], [0.1]])  # 2 of 8 flips are as large: all +, all -
    flipped = stats.flipped_means(differences, rng(), 40_000)
    assert stats.flip_test(0.2, flipped[:, 0]) == pytest.approx(0.25, abs=0.01)


def test_no_difference_is_no_evidence() -> None:
    flipped = stats.flipped_means(np.zeros((5, 1)), rng(), 100)
    assert stats.flip_test(0.0, flipped[:, 0]) == 1.0


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    draws, held = rng(7), 0
    for _ in range(400):
        sample = (draws.random((150, 1)) < 0.7).astype(float)
        means = stats.bootstrap_means(sample, draws, 500)
        low, high = stats.interval(float(sample.mean()), means[:, 0])
        held += low <= 0.7 <= high
    assert 0.91 <= held / 400 <= 0.98


def test_the_margin_is_the_one_of_the_textbook() -> None:
    sample = np.array([[1.0]] * 700 + [[0.0]] * 300)
    means = stats.bootstrap_means(sample, rng(), 10_000)
    low, high = stats.interval(0.7, means[:, 0])
    assert (high - low) / 2 == pytest.approx(1.96 * math.sqrt(0.7 * 0.3 / 1000), rel=0.05)


def test_columns_share_their_draws_and_skip_what_is_missing() -> None:
    one = rng(3).random(50)
    values = np.stack([one, one + 0.25, np.where(one < 0.5, np.nan, 1.0)], axis=1)
    means = stats.bootstrap_means(values, rng(), 200)
    assert means[:, 1] - means[:, 0] == pytest.approx(np.full(200, 0.25))
    assert means[:, 2] == pytest.approx(np.ones(200))
    assert stats.column_means(values)[2] == 1.0


def test_a_resample_without_a_measurement_is_left_out() -> None:
    values = np.array([[1.0], [np.nan], [np.nan]])
    means = stats.bootstrap_means(values, rng(), 200)
    assert np.isnan(means).any()
    assert stats.interval(1.0, means[:, 0]) == (1.0, 1.0)
    assert np.isnan(stats.column_means(np.full((3, 1), np.nan)))


@pytest.mark.parametrize("draw", [stats.bootstrap_means, stats.flipped_means])
def test_blocks_change_no_draw(draw: Callable[..., stats.Matrix], monkeypatch: pytest.MonkeyPatch) -> None:
    values = rng(1).random((40, 2))
    whole = draw(values, rng(5), 64)
    assert len(whole) == 64
    monkeypatch.setattr(stats, "_CELLS", 40 * 16)
    assert draw(values, rng(5), 64) == pytest.approx(whole)
