"""Measure a verifier on labelled steps: its labels, the errors that it finds, and the first error of trajectories.

**Rows.** Each row of ``safe-verifier-steps`` has a gold label (of eleven, or of twelve where
evidence may be missing) and the verifier's verdict on the step: a label, `UNPARSED` for a reply
without a valid verdict, or `FAILED` for a request without a reply. The last two are no labels:
such a row is in every denominator and never right, and both are counted apart.

- ``accuracy``: share of rows with the gold label. ``macro_f1``: mean of the labels' F1 over the
  labels that occur as gold.
- ``error_precision``, ``error_recall``, ``error_f1``: of finding steps that are wrong in any way
  (a gold label other than ``Correct``), whatever error type the verifier names.
- ``parse_rate``: replies with a valid verdict, of all replies.

**Trajectories** (ProcessBench, Zheng et al. 2024: find the first wrong step, or that there is none). The set holds
single rows, of which `step_set` makes trajectories. The first step that the verifier finds fault with is the flagged
one.

- ``first_error_erroneous``: share of erroneous trajectories whose flagged step is the first error,
  whatever type it names; ``first_error_correct``: share of correct ones with none flagged;
  ``first_error_f1``: the harmonic mean of the two. Every verdict up to the flagged step (all, where
  none is flagged) has to be readable for a trajectory to be right.

All are fractions from 0 to 1; None if there is nothing to measure. The 95% intervals are
percentiles of a bootstrap over questions, as the rows of a question are not independent.

Where rows say whether their wording was seen in training, measures of rows are also given by wording
(not of trajectories, which have steps of either kind).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluators.comparison.significance import Matrix, cohens_kappa, pooled_intervals, pooled_measures
from safe_stepwise.records import FAILED
from safe_stepwise.store.agreement import MEASURES, Score
from safe_stepwise.store.names import WORDINGS
from safe_stepwise.taxonomy import CORRECT, labels

UNPARSED = "unparsed"
TWELVE = labels(incomplete_evidence=True)
OUTCOMES = (*TWELVE, UNPARSED, FAILED)
"""Possible verdicts on a step."""
RESAMPLES = 1_000
ROW_MEASURES = tuple(name for name in MEASURES if not name.startswith("first_error"))
"""The measures that need no trajectories."""

_N, _CORRECT = len(TWELVE), TWELVE.index(CORRECT)
_WRONG = [n for n in range(_N) if n != _CORRECT]
_LOCATED = 4


@dataclass(frozen=True, slots=True)
class JudgedStep:
    """A row with its gold label and the verdict on it (one of `OUTCOMES`); raises ValueError for any other label."""

    id: str
    benchmark: str
    question: str
    gold: str
    verdict: str
    wording: str | None = None
    """One of `names.WORDINGS`, if the set has it."""

    def __post_init__(self) -> None:
        if self.gold not in TWELVE or self.verdict not in OUTCOMES:
            raise ValueError(f"row {self.id}: unknown label in {self.gold!r}, {self.verdict!r}")


@dataclass(frozen=True, slots=True)
class TrajectoryVerdicts:
    """One trajectory with the verdict on each step; ``first_error`` is a step from 1, None without an error."""

    benchmark: str
    question: str
    first_error: int | None
    verdicts: tuple[str, ...]

    @property
    def flagged(self) -> int | None:
        """The first step (from 1) with a verdict other than Correct.

        >>> TrajectoryVerdicts("b", "q", 2, ("Correct", "Redundancy")).flagged
        2
        """
        places = (n for n, verdict in enumerate(self.verdicts, 1) if verdict in TWELVE and verdict != CORRECT)
        return next(places, None)

    @property
    def is_right(self) -> bool:
        """Whether the flagged step is the first error and all verdicts up to it are readable."""
        return self.flagged == self.first_error and all(verdict in TWELVE for verdict in self.verdicts[: self.flagged])


def measure_quality(
    judged: Sequence[JudgedStep],
    trajectories: Sequence[TrajectoryVerdicts],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> dict[str, Any]:
    """Compute all measures of one verifier's verdicts, in any order.

    ``erroneous`` and ``correct`` count trajectories; ``types`` are of each label that is gold or a verdict somewhere;
    ``confusion`` has rows by gold label and outcome, zeros left out; ``benchmarks`` the measures of each alone,
    ``wordings`` the number of rows and their measures, where rows say their wording.
    """
    counts = _by_question(judged, trajectories)
    confusion, _ = _split(counts.sum(axis=0))
    scores = (
        Score(name, *(int(number) for number in (confusion[n, n], confusion[n].sum(), confusion[:, n].sum())))
        for n, name in enumerate(TWELVE)
    )
    return {
        "rows": len(judged),
        "questions": len({(row.benchmark, row.question) for row in judged}),
        "unparsed": int(confusion[:, _N].sum()),
        "failed": int(confusion[:, _N + 1].sum()),
        "erroneous": sum(trajectory.first_error is not None for trajectory in trajectories),
        "correct": sum(trajectory.first_error is None for trajectory in trajectories),
        "measures": pooled_measures(counts, _measures),
        "intervals": pooled_intervals(counts, _measures, seed, resamples),
        "types": tuple(score for score in scores if score.gold or score.predicted),
        "confusion": {
            gold: {outcome: int(n) for outcome, n in zip(OUTCOMES, row, strict=True) if n}
            for gold, row in zip(TWELVE, confusion, strict=True)
            if row.any()
        },
        "benchmarks": {
            name: _own_measures(
                [j for j in judged if j.benchmark == name], [t for t in trajectories if t.benchmark == name]
            )
            for name in sorted({row.benchmark for row in judged})
        },
        "wordings": {
            name: {"rows": len(rows), **{n: v for n, v in _own_measures(rows, []).items() if n in ROW_MEASURES}}
            for name in WORDINGS
            if (rows := [row for row in judged if row.wording == name])
        },
    }


def measure_agreement(first: Sequence[JudgedStep], other_judged: Sequence[JudgedStep]) -> dict[str, float | None]:
    """Compute the agreement of two verifiers, over the rows for which both gave a readable label.

    ``left_out`` counts the other rows that both judged. ``kappa`` is Cohen's, None if it is undefined: without
    rows, or if both give a single label throughout.
    """
    labels_b = {row.id: row.verdict for row in other_judged}
    pairs = [(row.verdict, labels_b[row.id]) for row in first if row.id in labels_b]
    read = [pair for pair in pairs if all(label in TWELVE for label in pair)]
    share = sum(x == y for x, y in read) / len(read) if read else None
    return {"rows": len(read), "left_out": len(pairs) - len(read), "share": share, "kappa": cohens_kappa(read)}


def measure_gain(
    judged: Sequence[JudgedStep], baseline: Sequence[JudgedStep], *, seed: int = 0, resamples: int = RESAMPLES
) -> dict[str, Any]:
    """Compute by how much (-1 to 1) a verifier's row measures exceed a baseline's, on the rows that both judged.

    The 95% intervals are of a paired bootstrap: both verifiers have the same questions in each sample.

    >>> better = [JudgedStep(n, "b", n, "Redundancy", "Redundancy") for n in "1234"]
    >>> always_correct = [JudgedStep(n, "b", n, "Redundancy", "Correct") for n in "123"]
    >>> gain = measure_gain(better, always_correct)
    >>> gain["rows"], gain["measures"]["error_f1"], gain["intervals"]["error_f1"]
    (3, 1.0, (1.0, 1.0))
    """
    shared = {row.id for row in judged} & {row.id for row in baseline}
    sides = [_by_question([row for row in rows if row.id in shared], []) for rows in (judged, baseline)]
    width, counts = sides[0].shape[1], np.concatenate(sides, axis=1)

    def gains(sums: Matrix) -> dict[str, Matrix]:
        first, second = _measures(sums[..., :width]), _measures(sums[..., width:])
        return {name: first[name] - second[name] for name in ROW_MEASURES}

    values, spans = pooled_measures(counts, gains), pooled_intervals(counts, gains, seed, resamples)
    return {"rows": len(shared), "measures": values, "intervals": spans}


def _by_question(judged: Sequence[JudgedStep], trajectories: Sequence[TrajectoryVerdicts]) -> Matrix:
    """Count, per question, rows by gold label and outcome; then erroneous trajectories, and how many of them are
    judged right; then correct trajectories, and how many of them are judged right."""
    rows_of = {(row.benchmark, row.question) for row in judged}
    keys = sorted(rows_of | {(trajectory.benchmark, trajectory.question) for trajectory in trajectories})
    place = {key: n for n, key in enumerate(keys)}
    confusion = np.zeros((len(keys), _N, len(OUTCOMES)))
    located = np.zeros((len(keys), _LOCATED))
    for row in judged:
        confusion[place[row.benchmark, row.question], TWELVE.index(row.gold), OUTCOMES.index(row.verdict)] += 1
    for trajectory in trajectories:
        first = 0 if trajectory.first_error is not None else 2
        cell = located[place[trajectory.benchmark, trajectory.question]]
        cell[first] += 1
        cell[first + 1] += trajectory.is_right
    return np.concatenate([confusion.reshape(len(keys), _N * len(OUTCOMES)), located], axis=1)


def _split(sums: Matrix) -> tuple[Matrix, Matrix]:
    return sums[..., :-_LOCATED].reshape(*sums.shape[:-1], _N, len(OUTCOMES)), sums[..., -_LOCATED:]


def harmonic_mean(first: Matrix, second: Matrix) -> Matrix:
    """Return the harmonic mean of two shares: 0 where both are 0, NaN where either is NaN."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(first + second == 0, 0.0, 2 * first * second / (first + second))


def _measures(sums: Matrix) -> dict[str, Matrix]:
    confusion, located = _split(sums)
    labelled = confusion[..., :_N]
    diagonal = np.diagonal(labelled, axis1=-2, axis2=-1)
    true, predicted = confusion.sum(axis=-1), labelled.sum(axis=-2)
    wrong, alarms = true[..., _WRONG].sum(axis=-1), predicted[..., _WRONG].sum(axis=-1)
    hits = labelled[..., _WRONG, :][..., _WRONG].sum(axis=(-1, -2))
    read, unparsed = labelled.sum(axis=(-1, -2)), confusion[..., _N].sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        f1 = np.where(true > 0, 2 * diagonal / (true + predicted), 0.0)
        erroneous, correct = located[..., 1] / located[..., 0], located[..., 3] / located[..., 2]
        return {
            "accuracy": diagonal.sum(axis=-1) / true.sum(axis=-1),
            "macro_f1": f1.sum(axis=-1) / (true > 0).sum(axis=-1),
            "error_precision": hits / alarms,
            "error_recall": hits / wrong,
            "error_f1": 2 * hits / (wrong + alarms),
            "first_error_erroneous": erroneous,
            "first_error_correct": correct,
            "first_error_f1": harmonic_mean(erroneous, correct),
            "parse_rate": read / (read + unparsed),
        }


def _own_measures(judged: Sequence[JudgedStep], trajectories: Sequence[TrajectoryVerdicts]) -> dict[str, float | None]:
    return pooled_measures(_by_question(judged, trajectories), _measures)
