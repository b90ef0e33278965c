"""Measure what a verifier's scores are worth: its probabilities of *Correct* against the steps' labels.

All figures are fractions from 0 to 1, over the steps that have a score:

- ``ece``: expected calibration error, the mean distance of score and share of right steps over ten bins of equal
  width, weighted by steps (Guo et al., 2017); ``brier``: the mean squared error.
- ``error_average_precision``: area under the precision-recall curve of finding wrong steps by the lowest scores.
- ``temperature``: what the scores' logits are divided by to fit one half of the questions; ``ece_held_out`` and
  ``ece_tempered``: the error on the other half, before and after. Only halves of `LEAST_STEPS` or more are used.
- ``thresholds``: what `Limits.accept_above` would accept: the steps, the share of them that is right with Wilson's
  interval, and their share of all right steps. ``chosen``: for each target of that first share, the lowest threshold
  that reaches it on one half of the questions, and its figures on the other half.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from evaluators.comparison.significance import Matrix, wilson
from safe_stepwise.store.figures import panels

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
LEAST_STEPS = 50
PROMISES = (0.8, 0.9, 0.95)
"""Shares of right steps among the accepted ones that a threshold is chosen for."""
BINS = 10
_TEMPERATURES = np.geomspace(0.05, 20, 601)
_LEAST = 1e-6  # scores of 0 and 1 have no logit
_DIGITS = 6
RELIABILITY = "reliability.png"


class ScoredStep(NamedTuple):
    """A step's question, its score (None: none), and whether it is right."""

    question: str
    score: float | None
    is_right: bool


def measure_calibration(steps: Iterable[ScoredStep]) -> dict[str, Any]:
    """Compute the measures; without any score, only the number of steps ``without``."""
    everything = list(steps)
    scored = [step for step in everything if step.score is not None]
    counts = {"steps": len(scored), "without": len(everything) - len(scored)}
    if not scored:
        return counts
    scores, right = _columns(scored)
    halves = [[step for step in scored if _half(step.question) == half] for half in (0, 1)]
    are_enough = all(len(half) >= LEAST_STEPS for half in halves)
    return {
        **counts,
        "right": round(float(right.mean()), _DIGITS),
        "ece": expected_error(scores, right),
        "brier": round(float(((scores - right) ** 2).mean()), _DIGITS),
        "error_average_precision": _error_average_precision(scores, right),
        **(_temper(*map(_columns, halves)) if are_enough else {}),
        "bins": _bins(scores, right),
        "thresholds": [{"accept_above": t, **_accepted(scores, right, t)} for t in THRESHOLDS],
        "chosen": [*_choose(*map(_columns, halves))] if are_enough else [],
    }


def expected_error(scores: Matrix, right: Matrix) -> float:
    """Compute the expected calibration error of scores (0-1); ``right`` is 1 for right steps, else 0."""
    gaps = (row["steps"] * abs(row["score"] - row["right"]) for row in _bins(scores, right))
    return round(float(sum(gaps)) / len(scores), _DIGITS)


def known_scores(results: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the verifiers' names and measures in an evaluation's results, without those that told no score."""
    return [(name, measures) for name, measures in results.get("calibration", {}).items() if measures["steps"]]


def render_reliability(results: Mapping[str, Any]) -> dict[str, bytes]:
    """Draw each verifier's scores by bin against the share of right steps; no file without scores."""
    measured = known_scores(results)

    def panel(axes: Any, item: tuple[str, Mapping[str, Any]]) -> None:
        name, measures = item
        axes.plot((0, 1), (0, 1), color="#bbbbbb", linestyle="--")
        bins = measures["bins"]
        axes.plot([row["score"] for row in bins], [row["right"] for row in bins], marker="o", color="#4477aa")
        for row in bins:
            axes.annotate(f"{row['steps']:,}", (row["score"], row["right"]), fontsize=7)
        axes.set_xlabel("score")
        axes.set_ylabel("share of right steps")
        axes.set_title(f"{name}\nECE {measures['ece']:.3f}", fontsize=8, parse_math=False, wrap=True)

    return {RELIABILITY: panels(panel, [[item] for item in measured], (4.6, 4.2))} if measured else {}


def _columns(steps: Sequence[ScoredStep]) -> tuple[Matrix, Matrix]:
    return np.array([step.score for step in steps], float), np.array([step.is_right for step in steps], float)


def _half(question: str) -> int:
    return hashlib.sha256(question.encode("utf-8", "surrogatepass")).digest()[0] % 2


def _bins(scores: Matrix, right: Matrix) -> list[dict[str, Any]]:
    places = np.minimum((scores * BINS).astype(int), BINS - 1)
    return [
        {
            "steps": int(chosen.sum()),
            "score": round(float(scores[chosen].mean()), _DIGITS),
            "right": round(float(right[chosen].mean()), _DIGITS),
        }
        for place in range(BINS)
        if (chosen := places == place).any()
    ]


def _error_average_precision(scores: Matrix, right: Matrix) -> float | None:
    from sklearn.metrics import average_precision_score

    if right.all():
        return None
    return round(float(average_precision_score(1 - right, 1 - scores)), _DIGITS)


def _temper(fitted: tuple[Matrix, Matrix], held_out: tuple[Matrix, Matrix]) -> dict[str, float]:
    losses = [_log_loss(_tempered(fitted[0], t), fitted[1]) for t in _TEMPERATURES]
    temperature = float(_TEMPERATURES[int(np.argmin(losses))])
    tempered = _tempered(held_out[0], temperature)
    errors = {"ece_held_out": expected_error(*held_out), "ece_tempered": expected_error(tempered, held_out[1])}
    return {"temperature": round(temperature, 3), **errors}


def _tempered(scores: Matrix, temperature: float) -> Matrix:
    clipped = np.clip(scores, _LEAST, 1 - _LEAST)
    tempered: Matrix = 1 / (1 + np.exp(-np.log(clipped / (1 - clipped)) / temperature))
    return tempered


def _log_loss(scores: Matrix, right: Matrix) -> float:
    clipped = np.clip(scores, _LEAST, 1 - _LEAST)
    return float(-(right * np.log(clipped) + (1 - right) * np.log(1 - clipped)).mean())


def _accepted(scores: Matrix, right: Matrix, threshold: float) -> dict[str, Any]:
    accepted = scores >= threshold
    count, hits = int(accepted.sum()), int(right[accepted].sum())
    precision = asdict(wilson(hits, count)) if count else dict.fromkeys(("value", "low", "high"))
    recall = round(hits / float(right.sum()), _DIGITS) if right.any() else None
    return {"steps": len(scores), "accepted": count, "precision": precision, "recall": recall}


def _choose(fitted: tuple[Matrix, Matrix], held_out: tuple[Matrix, Matrix]) -> Iterable[dict[str, Any]]:
    scores, right = fitted
    for promise in PROMISES:
        keeping = (t for t in np.unique(scores) if right[scores >= t].mean() >= promise)
        if (threshold := next(keeping, None)) is not None:
            # Rounded down, so that it accepts what it was chosen for.
            rounded = math.floor(threshold * 10**_DIGITS) / 10**_DIGITS
            yield {"promise": promise, "accept_above": rounded, **_accepted(*held_out, rounded)}
