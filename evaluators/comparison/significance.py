"""Intervals, agreement and paired tests; every draw comes from the caller's generator.

A matrix has a row a question and a column a measurement; NaN marks a measurement that is missing.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Measure = Callable[[Matrix], Mapping[str, Matrix]]
"""From sums of counts to measures by name; leading axes are kept."""

CONFIDENCE = 0.95
_CELLS = 2_000_000
"""Cells of a block of resamples: bounds memory, and changes no draw."""
_TIE = 1e-9
"""Sums that differ by less are the same sum, added up in another order."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean (0-1) or a difference of means, with its 95% confidence interval."""

    value: float
    low: float
    high: float


def bootstrap_means(values: Matrix, rng: np.random.Generator, resamples: int) -> Matrix:
    """Compute the columns' means (NaN: no measurement) in resamples of the rows; all columns share the draws."""
    present, filled = _filled(values)
    return resampled(lambda weights: _ratio(weights @ filled, weights @ present), len(values), rng, resamples)


def resampled(measure: Callable[[Matrix], Matrix], rows: int, rng: np.random.Generator, resamples: int) -> Matrix:
    """Apply ``measure`` to how often each row is drawn with replacement; returns a row a resample."""

    def block_measures(block: int) -> Matrix:
        rows_drawn = rng.integers(rows, size=(block, rows)) + np.arange(block)[:, None] * rows
        weights = np.bincount(rows_drawn.ravel(), minlength=block * rows).reshape(block, rows)
        return measure(weights.astype(np.float64))

    return in_blocks(block_measures, rows, resamples)


def flipped_means(differences: Matrix, rng: np.random.Generator, resamples: int) -> Matrix:
    """Compute the columns' means under random signs of the rows: the null of no difference."""
    rows = len(differences)
    present, filled = _filled(differences)
    counts = present.sum(axis=0)

    def means(block: int) -> Matrix:
        coins = rng.integers(0, 2, size=(block, rows), dtype=np.int8)
        return _ratio((coins * 2.0 - 1.0) @ filled, counts)

    return in_blocks(means, rows, resamples)


def pooled_measures(counts: Matrix, measure: Measure) -> dict[str, float | None]:
    """Compute the measures of the summed counts, a row a question; None if there is nothing to measure."""
    return {name: None if np.isnan(value) else float(value) for name, value in measure(counts.sum(axis=0)).items()}


def pooled_intervals(
    counts: Matrix, measure: Measure, seed: int, resamples: int
) -> dict[str, tuple[float, float] | None]:
    """Bootstrap the intervals of measures over the rows of counts; None as in `pooled_measures`."""
    rows, names = len(counts), [*measure(counts.sum(axis=0))]
    if not rows or not resamples:
        return dict.fromkeys(names)
    chance = np.random.default_rng(seed)

    def block_measures(size: int) -> Matrix:
        # How often each row is drawn; sums of whole numbers, exact in any order.
        values = measure(chance.multinomial(rows, np.full(rows, 1 / rows), size=size) @ counts)
        return np.stack([values[name] for name in names], axis=1)

    columns = in_blocks(block_measures, counts.size, resamples).T
    return {name: percentiles(values) for name, values in zip(names, columns, strict=True)}


def interval(value: float, means: Matrix) -> tuple[float, float]:
    """Return the percentile interval of bootstrapped means, widened to hold ``value``."""
    low, high = percentiles(means) or (value, value)
    return min(low, value), max(high, value)


def percentiles(values: Matrix) -> tuple[float, float] | None:
    """Return the bounds between which `CONFIDENCE` of the values lie; None where all are NaN."""
    present = values[~np.isnan(values)]
    if not len(present):
        return None
    low, high = np.quantile(present, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
    return float(low), float(high)


def wilson(hits: int, rows: int) -> Estimate:
    """Compute the share of ``hits`` in ``rows``, 1 or more, with Wilson's score interval (1927)."""
    share, z = hits / rows, NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    middle = share + z * z / (2 * rows)
    margin = z * math.sqrt(share * (1 - share) / rows + z * z / (4 * rows * rows))
    bounds = ((middle + side * margin) / (1 + z * z / rows) for side in (-1, 1))
    low, high = (round(min(max(bound, 0.0), 1.0), 4) for bound in bounds)
    return Estimate(round(share, 4), low, high)


def cohens_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Compute Cohen's kappa of two raters' labels, a pair a row; None without rows, or with one label throughout.

    >>> cohens_kappa([("yes", "yes"), ("yes", "no"), ("no", "no"), ("no", "no")])
    0.5
    """
    n = len(pairs)
    equal = sum(a == b for a, b in pairs)
    # Times n squared, in whole numbers, so that equal labels give exactly 1.
    first_counts, second_counts = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    by_chance = sum(times * second_counts[label] for label, times in first_counts.items())
    return None if by_chance == n * n else (equal * n - by_chance) / (n * n - by_chance)


def flip_test(observed: float, flipped: Matrix) -> float:
    """Return the two-sided p-value of a mean difference against its sign flips (never 0: it counts itself)."""
    return (1 + int((np.abs(flipped) >= abs(observed) - _TIE).sum())) / (1 + len(flipped))


def mcnemar(wins: int, losses: int) -> float:
    """Return McNemar's exact two-sided p-value: the binomial over the discordant questions."""
    discordant = wins + losses
    tail = sum(math.comb(discordant, k) for k in range(min(wins, losses) + 1))
    p: float = 2 * tail / 2**discordant
    return min(1.0, p)


def round_p(p: float) -> float:
    """Round a p-value to six significant digits, so that a small one does not become 0."""
    return float(f"{p:.6g}")


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust a family of p-values by Holm's method, in their order."""
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, p_values[index] * (len(p_values) - rank)))
        adjusted[index] = largest
    return adjusted


def column_means(values: Matrix) -> Matrix:
    """Compute the columns' means over their measurements; NaN where there are none."""
    present, filled = _filled(values)
    return _ratio(filled.sum(axis=0), present.sum(axis=0))


def in_blocks(means: Callable[[int], Matrix], rows: int, resamples: int) -> Matrix:
    """Call ``means`` for blocks of resamples, and concatenate the results."""
    size = max(1, _CELLS // max(1, rows))
    return np.concatenate([means(min(size, resamples - start)) for start in range(0, resamples, size)])


def _filled(values: Matrix) -> tuple[Matrix, Matrix]:
    present = ~np.isnan(values)
    return present.astype(np.float64), np.where(present, values, 0.0)


def _ratio(above: Matrix, below: Any) -> Matrix:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(above / below, dtype=np.float64)
