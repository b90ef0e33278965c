"""What outcomes say of the systems that made them: scores, margins, and who beats whom.

- Scores are means over a system's questions, in each benchmark and as the mean of the benchmarks
  (SAFE v1, Table 3); a system that lacks a benchmark has no such mean.
- Accuracy is the share of *scored* questions that the judge took for correct. What it could not
  score is counted, and is neither right nor wrong.
- Intervals are percentile bootstrap intervals over questions, drawn within each benchmark.
- Two systems that are paired (`evaluators.comparison.systems`) are compared on the questions that
  both have. Differences of EM and accuracy in one benchmark are tested by McNemar's exact test; F1
  and means of several benchmarks by flipping the signs of questions at random. Holm's adjustment
  counts all tests of one measure in one column.
- A baseline is a system whose answering role is asked alone.

Nothing here depends on the order of the outcomes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evaluators.comparison import significance as stats
from evaluators.comparison.scores import METRICS, Cell, Comparison, Difference, Estimates, Row, Test
from evaluators.comparison.significance import Estimate, Matrix
from evaluators.comparison.systems import System, in_order, pairs
from evaluators.outcomes import Outcome, statistics_of
from safe_stepwise.errors import UserError
from safe_stepwise.methods.loop import MALFORMED
from safe_stepwise.records import FAILED

RESAMPLES = 10_000
_DIGITS = 6
"""More than anybody reads, fewer than the order of a sum can change."""

Questions = dict[tuple[str, int], Outcome]
"""Outcomes by question id; questions that share an id are numbered in their order."""


def compare(outcomes: Iterable[Outcome], seed: int = 0, resamples: int = RESAMPLES) -> Comparison:
    """All systems that ``outcomes`` know of, compared.

    ``seed`` and ``resamples`` are those of the bootstrap and of the sign flips. Raises
    ``UserError`` if there are no outcomes.
    """
    by_system = _by_system(outcomes)
    if not by_system:
        raise UserError("there are no outcomes to compare; run scripts.evaluate_stepwise first")
    systems = in_order(by_system)
    paired = pairs(systems)
    benchmarks = sorted({benchmark for found in by_system.values() for benchmark in found})
    samples: dict[str | None, _Sample] = {
        name: _sample(
            [by_system[system].get(name, {}) for system in systems],
            [(systems.index(first), systems.index(second)) for first, second in paired],
            np.random.default_rng([seed, *name.encode()]),
            resamples,
        )
        for name in benchmarks
    }
    samples[None] = _mean([samples[name] for name in benchmarks])
    rows = [_row(system, by_system[system], samples, at) for at, system in enumerate(systems)]
    simulated = {row.system: row.simulated for row in rows}
    differences = [
        difference
        for at, (first, second) in enumerate(paired, len(systems))
        for name, sample in samples.items()
        for difference in sample.differences(
            at, first, second, name, simulated[first] or simulated[second]
        )
    ]
    return Comparison(tuple(benchmarks), tuple(rows), _adjusted(differences), seed, resamples)


@dataclass(frozen=True, slots=True)
class _Sample:
    """Measured and resampled columns: three a system, then three a pair of systems."""

    systems: int
    means: Matrix
    resampled: Matrix
    flipped: Matrix
    """Of the pairs alone."""
    counts: Matrix
    """Questions behind each column's mean."""
    unpaired: Matrix
    wins: Matrix
    losses: Matrix
    benchmarks: int = 1

    def estimates(self, at: int) -> Estimates:
        return {metric: self._estimate(3 * at + m) for m, metric in enumerate(METRICS)}

    def differences(
        self, at: int, first: System, second: System, benchmark: str | None, simulated: bool
    ) -> Iterable[Difference]:
        for m, metric in enumerate(METRICS):
            column, pair = 3 * at + m, 3 * (at - self.systems) + m
            estimate = self._estimate(column)
            if estimate is None:
                continue
            tested: tuple[Test, float]
            if self.benchmarks == 1 and metric != "f1":
                tested = "mcnemar", stats.mcnemar(int(self.wins[pair]), int(self.losses[pair]))
            else:
                observed = float(self.means[column])
                tested = "sign_flip", stats.flip_test(observed, self.flipped[:, pair])
            pairs, unpaired = int(self.counts[column]), int(self.unpaired[pair])
            known = first, second, benchmark, metric, simulated, pairs, unpaired
            yield Difference(*known, estimate, *tested)

    def _estimate(self, column: int) -> Estimate | None:
        value = float(self.means[column])
        if np.isnan(value):
            return None
        low, high = stats.interval(value, self.resampled[:, column])
        return Estimate(*(round(number, _DIGITS) + 0.0 for number in (value, low, high)))


def _sample(
    questions: Sequence[Questions],
    pairs: Sequence[tuple[int, int]],
    rng: np.random.Generator,
    resamples: int,
) -> _Sample:
    """One benchmark: ``questions`` of each system, and the pairs of systems to compare."""
    ids = sorted(set().union(*questions))
    values = np.array([[_measured(found.get(id_)) for found in questions] for id_ in ids])
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    differences = values[:, first] - values[:, second]
    one_only = np.isnan(values[:, first]) != np.isnan(values[:, second])
    columns = np.concatenate([values, differences], axis=1).reshape(len(ids), -1)
    differences = differences.reshape(len(ids), -1)
    return _Sample(
        systems=len(questions),
        means=stats.column_means(columns),
        resampled=stats.bootstrap_means(columns, rng, resamples),
        flipped=stats.flipped_means(differences, rng, resamples),
        counts=(~np.isnan(columns)).sum(axis=0).astype(np.float64),
        unpaired=one_only.reshape(len(ids), -1).sum(axis=0).astype(np.float64),
        wins=(differences > 0).sum(axis=0).astype(np.float64),
        losses=(differences < 0).sum(axis=0).astype(np.float64),
    )


def _mean(samples: Sequence[_Sample]) -> _Sample:
    """The mean of the benchmarks; NaN where one of them has nothing."""

    def over(how: Callable[..., Matrix], *names: str) -> dict[str, Matrix]:
        return {name: how([getattr(s, name) for s in samples], axis=0) for name in names}

    return _Sample(
        systems=samples[0].systems,
        benchmarks=len(samples),
        **over(np.mean, "means", "resampled", "flipped"),
        **over(np.sum, "counts", "unpaired", "wins", "losses"),
    )


def _measured(outcome: Outcome | None) -> tuple[float, float, float]:
    if outcome is None:
        return np.nan, np.nan, np.nan
    judged = {"correct": 1.0, "incorrect": 0.0}.get(outcome.verdict or "", np.nan)
    return outcome.exact_match, outcome.f1, judged


def _by_system(outcomes: Iterable[Outcome]) -> dict[System, dict[str, Questions]]:
    found: dict[System, dict[str, Questions]] = {}
    for o in outcomes:
        system = System.of(o.method, o.players, o.options)
        questions = found.setdefault(system, {}).setdefault(o.benchmark, {})
        copy = 0
        while (o.question_id, copy) in questions:
            copy += 1
        questions[o.question_id, copy] = o
    return found


def _row(
    system: System, found: Mapping[str, Questions], samples: Mapping[str | None, _Sample], at: int
) -> Row:
    outcomes = [outcome for questions in found.values() for outcome in questions.values()]
    attempts = [attempt for outcome in outcomes for attempt in outcome.trajectory.attempts]
    said = (attempt.feedback for attempt in attempts)
    loop = statistics_of(outcomes)
    return Row(
        system=system,
        simulated=any(outcome.simulated for outcome in outcomes),
        verified=any(verdict and verdict.error_type != MALFORMED for verdict in said),
        players=system.asked(loop.calls),
        cells={
            name: _cell(questions, samples[name].estimates(at))
            for name, questions in sorted(found.items())
        },
        average=samples[None].estimates(at),
        loop=loop,
    )


def _cell(questions: Questions, estimates: Estimates) -> Cell:
    verdicts = [outcome.verdict for outcome in questions.values()]
    unscored, unjudged = verdicts.count("unscored"), verdicts.count(None)
    return Cell(
        questions=len(verdicts),
        scored=len(verdicts) - unscored - unjudged,
        unscored=unscored,
        unjudged=unjudged,
        failed=sum(o.trajectory.stop_reason == FAILED for o in questions.values()),
        estimates=estimates,
    )


def _adjusted(differences: Sequence[Difference]) -> tuple[Difference, ...]:
    """With Holm's p-values, in families of one measure and benchmark."""
    families: dict[tuple[str | None, str], list[int]] = {}
    for n, d in enumerate(differences):
        families.setdefault((d.benchmark, d.metric), []).append(n)
    p_holm: dict[int, float] = {}
    for family in families.values():
        p_holm.update(zip(family, stats.holm([differences[n].p for n in family]), strict=True))
    return tuple(
        replace(d, p=_short(d.p), p_holm=_short(p_holm[n])) for n, d in enumerate(differences)
    )


def _short(p: float) -> float:
    """To six significant digits: a small p-value is not nothing."""
    return float(f"{p:.6g}")
