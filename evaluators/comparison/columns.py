"""What is measured of systems as columns of numbers: means, resamples, sign flips.

Three columns, one a measure, for each system and each total, and for each pair of them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evaluators.comparison import significance as stats
from evaluators.comparison.significance import Estimate, Matrix
from evaluators.comparison.systems import System, shared_by_all
from evaluators.outcomes import METRICS, Metric, Outcome

_DIGITS = 6
"""More than anybody reads, fewer than the order of a sum can change."""
Questions = dict[tuple[str, int], Outcome]
"""Outcomes by question id; questions that share an id are numbered in their order."""
Pairing = Callable[[Sequence[System]], Sequence[tuple[System, System]]]
"""From systems in their order to those that are compared, the better placed first."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Which columns there are: systems and totals, pairs of systems and pairs of totals."""

    systems: Sequence[System]
    totals: Mapping[System, Sequence[System]]
    """Means, by the systems that they are means of."""
    pairs: Sequence[tuple[System, System]]
    total_pairs: Sequence[tuple[System, System]]

    @property
    def compared(self) -> list[tuple[System, System]]:
        return [*self.pairs, *self.total_pairs]

    @property
    def parts(self) -> list[list[tuple[int, int]]]:
        """Of each pair the places of the systems that are paired: of totals, all they are of."""
        at = {system: n for n, system in enumerate(self.systems)}
        members = {system: {system.answering: n} for system, n in at.items()}
        members |= {t: {s.answering: at[s] for s in of} for t, of in self.totals.items()}
        return [[(n, members[second][who]) for who, n in members[first].items()] for first, second in self.compared]


@dataclass(frozen=True, slots=True)
class Tested:
    """How much better the first of a pair is in one measure."""

    metric: Metric
    pairs: int
    unpaired: int
    estimate: Estimate
    is_exact: bool
    """By McNemar's test, not by flips of signs."""
    p: float


@dataclass(frozen=True, slots=True)
class Sample:
    """Measured and resampled columns: three a system or total, and three a pair of them."""

    means: Matrix
    resampled: Matrix
    gains: Matrix
    """The pairs' means; so all below."""
    regained: Matrix
    flipped: Matrix
    counts: Matrix
    """Questions behind each mean."""
    unpaired: Matrix
    wins: Matrix
    losses: Matrix
    exact: Sequence[bool]
    """Whether a pair is one of systems in one benchmark."""

    def estimates(self, at: int) -> dict[Metric, Estimate | None]:
        """Of the system or total in that place."""
        return {
            metric: _estimate(self.means[3 * at + m], self.resampled[:, 3 * at + m])
            for m, metric in enumerate(METRICS)
        }

    def tested(self, at: int) -> Iterable[Tested]:
        """Of the pair in that place, measure by measure, as far as both have it."""
        for m, metric in enumerate(METRICS):
            pair = 3 * at + m
            estimate = _estimate(self.gains[pair], self.regained[:, pair])
            if estimate is None:
                continue
            pairs, unpaired = int(self.counts[pair]), int(self.unpaired[pair])
            is_exact = self.exact[at] and metric != "f1"
            if is_exact:
                p = stats.mcnemar(int(self.wins[pair]), int(self.losses[pair]))
            else:
                p = stats.flip_test(float(self.gains[pair]), self.flipped[:, pair])
            yield Tested(metric, pairs, unpaired, estimate, is_exact, p)


def _estimate(mean: float, resampled: Matrix) -> Estimate | None:
    value = float(mean)
    if np.isnan(value):
        return None
    low, high = stats.interval(value, resampled)
    return Estimate(*(round(number, _DIGITS) + 0.0 for number in (value, low, high)))


def planned(simulated: Mapping[System, bool], paired: Pairing) -> Plan:
    """The columns of systems, of the totals of what ran with all who answer, and of their pairs.

    A total of what models and what ``simulated`` players said would be of neither.
    """
    systems = [*simulated]
    totals = {
        total: of for total, of in shared_by_all(systems).items() if len({simulated[system] for system in of}) == 1
    }
    return Plan(systems, totals, paired(systems), paired([*totals]))


def sampled(questions: Sequence[Questions], plan: Plan, rng: np.random.Generator, resamples: int) -> Sample:
    """One benchmark: ``questions`` of each system."""
    ids = sorted(set().union(*questions))
    values = np.array([[_measured(found.get(id_)) for found in questions] for id_ in ids])
    parts = list(dict.fromkeys(pair for of in plan.parts for pair in of))
    first, second = [a for a, _ in parts], [b for _, b in parts]
    differences = values[:, first] - values[:, second]
    one_only = np.isnan(values[:, first]) != np.isnan(values[:, second])
    columns = np.concatenate([values, differences], axis=1).reshape(len(ids), -1)
    differences = differences.reshape(len(ids), -1)
    means, resampled = stats.column_means(columns), stats.bootstrap_means(columns, rng, resamples)
    own = 3 * len(questions)
    at = {system: n for n, system in enumerate(plan.systems)}
    systems = [[n] for n in at.values()] + [[at[s] for s in of] for of in plan.totals.values()]
    place = {pair: n for n, pair in enumerate(parts)}
    pairs = [[place[pair] for pair in of] for of in plan.parts]
    counts = (~np.isnan(differences)).sum(axis=0).astype(np.float64)
    return Sample(
        means=_over(systems, means[:own]),
        resampled=_over(systems, resampled[:, :own]),
        gains=_over(pairs, means[own:]),
        regained=_over(pairs, resampled[:, own:]),
        flipped=_over(pairs, stats.flipped_means(differences, rng, resamples)),
        counts=_over(pairs, counts, np.sum),
        unpaired=_over(pairs, one_only.reshape(len(ids), -1).sum(axis=0), np.sum),
        wins=_over(pairs, (differences > 0).sum(axis=0), np.sum),
        losses=_over(pairs, (differences < 0).sum(axis=0), np.sum),
        exact=[True] * len(plan.pairs) + [False] * len(plan.total_pairs),
    )


def _over(groups: Sequence[Sequence[int]], columns: Matrix, how: Callable[..., Matrix] = np.mean) -> Matrix:
    """Columns put together by groups of threes; NaN where one of a group is."""
    threes = columns.reshape(*columns.shape[:-1], -1, 3).astype(np.float64)
    made = [how(threes[..., list(group), :], axis=-2) for group in groups]
    shape = (*columns.shape[:-1], 3 * len(groups))
    return np.stack(made, axis=-2).reshape(shape) if made else np.empty(shape)


def mean_of(samples: Sequence[Sample]) -> Sample:
    """The mean of the benchmarks; NaN where one of them has nothing."""

    def over(how: Callable[..., Matrix], *names: str) -> dict[str, Matrix]:
        return {name: how([getattr(s, name) for s in samples], axis=0) for name in names}

    return Sample(
        **over(np.mean, "means", "resampled", "gains", "regained", "flipped"),
        **over(np.sum, "counts", "unpaired", "wins", "losses"),
        exact=samples[0].exact if len(samples) == 1 else [False] * len(samples[0].exact),
    )


def _measured(outcome: Outcome | None) -> tuple[float, float, float]:
    if outcome is None:
        return np.nan, np.nan, np.nan
    judged = {"correct": 1.0, "incorrect": 0.0}.get(outcome.verdict or "", np.nan)
    return outcome.exact_match, outcome.f1, judged
