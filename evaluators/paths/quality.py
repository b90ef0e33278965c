"""Measures of verdicts that tell valid paths from corrupted ones.

A verdict is YES, NO, `UNREADABLE` (a reply without one) or `FAILED` (no reply). The last two are counted apart and
are in no accuracy; ``least`` is the balanced accuracy that counts them as wrong.

- ``kinds``: the share of right verdicts on the rows of a kind of corruption.
- ``paper_mean``: the unweighted mean over the paper's four kinds (valid, factual, incoherent, misguided, the last
  being other questions' paths), as Table 2 of arXiv 2402.11199 has of Table 6. A constant NO gets 75%.
- ``balanced``: the mean of the accuracy on valid and on all corrupted paths. A constant gets 50%.
- ``accuracy``: the share over all rows.

All are fractions; None if there is nothing to measure. The 95% intervals are percentiles of a
bootstrap over questions, as the rows of a question are not independent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluators.comparison.significance import Matrix, pooled_intervals, pooled_measures
from safe_stepwise.records import FAILED
from safe_stepwise.store.names import CORRUPTIONS, Corruption

UNREADABLE = "unreadable"
OUTCOMES = ("YES", "NO", UNREADABLE, FAILED)
RESAMPLES = 1_000
PAPER: Mapping[str, tuple[Corruption, ...]] = {
    "valid": ("valid",),
    "factual": ("factual_head", "factual_tail"),
    "incoherent": ("incoherent",),
    "misguided": ("misguided_question",),
}
"""The paper's kinds, each with ours."""
MEASURES = ("accuracy", "balanced", "least", "paper_mean")
_VALID = CORRUPTIONS.index("valid")
_WRONG = [n for n in range(len(CORRUPTIONS)) if n != _VALID]
_GROUPS = [[CORRUPTIONS.index(kind) for kind in kinds] for kinds in PAPER.values()]


@dataclass(frozen=True, slots=True)
class JudgedPath:
    """One row with the verdict on it (one of `OUTCOMES`)."""

    benchmark: str
    question: str
    kind: Corruption
    verdict: str

    @property
    def is_right(self) -> bool:
        return self.verdict == ("YES" if self.kind == "valid" else "NO")


def measure_quality(judged: Sequence[JudgedPath], *, seed: int = 0, resamples: int = RESAMPLES) -> dict[str, Any]:
    """Compute all measures of one engine's verdicts by one prompt, in any order."""
    counts = _count_by_question(judged)
    totals = counts.sum(axis=0).reshape(len(CORRUPTIONS), 3)
    values, spans = pooled_measures(counts, _measure), pooled_intervals(counts, _measure, seed, resamples)
    return {
        "rows": len(judged),
        "questions": len(counts),
        "said": {outcome: sum(row.verdict == outcome for row in judged) for outcome in OUTCOMES},
        "measures": {name: values[name] for name in MEASURES},
        "intervals": {name: spans[name] for name in MEASURES},
        "kinds": {
            kind: {
                "rows": int(totals[n].sum()),
                "unreadable": int(totals[n, 2]),
                "accuracy": values[kind],
                "interval": spans[kind],
            }
            for n, kind in enumerate(CORRUPTIONS)
            if totals[n].any()
        },
        "benchmarks": {
            name: _measure_benchmark([row for row in judged if row.benchmark == name])
            for name in sorted({row.benchmark for row in judged})
        },
    }


def _measure_benchmark(judged: Sequence[JudgedPath]) -> dict[str, float | None]:
    values = pooled_measures(_count_by_question(judged), _measure)
    return {"rows": len(judged), **{name: values[name] for name in MEASURES}}


def _count_by_question(judged: Sequence[JudgedPath]) -> Matrix:
    """Count, per question and kind, the rows judged right, judged wrong, and without a verdict."""
    keys = sorted({(row.benchmark, row.question) for row in judged})
    place = {key: n for n, key in enumerate(keys)}
    counts = np.zeros((len(keys), len(CORRUPTIONS), 3))
    for row in judged:
        outcome = 2 if row.verdict not in ("YES", "NO") else 0 if row.is_right else 1
        counts[place[row.benchmark, row.question], CORRUPTIONS.index(row.kind), outcome] += 1
    return counts.reshape(len(keys), len(CORRUPTIONS) * 3)


def _measure(sums: Matrix) -> dict[str, Matrix]:
    counts = sums.reshape(*sums.shape[:-1], len(CORRUPTIONS), 3)
    right, read = counts[..., 0], counts[..., 0] + counts[..., 1]
    rows = counts.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        kinds = right / read
        groups = [right[..., members].sum(axis=-1) / read[..., members].sum(axis=-1) for members in _GROUPS]
        wrong = right[..., _WRONG].sum(axis=-1)
        balanced = (kinds[..., _VALID] + wrong / read[..., _WRONG].sum(axis=-1)) / 2
        valid = right[..., _VALID] / rows[..., _VALID]
        least = (valid + wrong / rows[..., _WRONG].sum(axis=-1)) / 2
        accuracy = right.sum(axis=-1) / read.sum(axis=-1)
    return {
        "accuracy": accuracy,
        "balanced": balanced,
        "least": least,
        "paper_mean": sum(groups[1:], groups[0]) / len(groups),
        **{kind: kinds[..., n] for n, kind in enumerate(CORRUPTIONS)},
    }
