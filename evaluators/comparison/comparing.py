"""Compare systems by their outcomes on the same questions: scores with intervals, and tested differences.

An *outcome* is a system's scored answer to one question (`systems`); `compare` does it all, in any order:

- Scores are means over a system's questions, in each benchmark and as the mean of the benchmarks (SAFE v1, Table 3); a
  system that lacks a benchmark has no such mean. Accuracy is the share of *scored* questions that the judge called
  correct. Unscored questions are counted, and are neither right nor wrong.
- Intervals are percentile bootstrap intervals over questions, drawn within each benchmark.
- Two paired systems are compared on the questions that both have. Differences of EM and accuracy in one benchmark are
  tested by McNemar's exact test; F1 and means of several benchmarks by flipping the signs of questions at random.
  Holm's adjustment counts all tests of one measure in one column.
- A total (`scores`) is a mean over answerers, question by question, tested by flips of signs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evaluators.comparison import significance as stats
from evaluators.comparison.scores import Cell, Comparison, Difference, Estimates, Row, Test
from evaluators.comparison.significance import Estimate, Matrix
from evaluators.comparison.systems import System, group_totals, pair_systems, sort_systems, system_of
from evaluators.outcomes import METRICS, Metric, Outcome, grouped, numbered, statistics_of
from safe_stepwise.errors import UserError
from safe_stepwise.methods.loop import MALFORMED
from safe_stepwise.records import FAILED

_DIGITS = 6
"""Digits to which estimates are rounded, so that the order of a sum changes none."""
Questions = dict[tuple[str, int], Outcome]
"""A system's outcomes in one benchmark by question id and a number, which tells questions with the same id apart."""
Pairing = Callable[[Sequence[System]], Sequence[tuple[System, System]]]
"""A function from systems, in order, to the pairs to compare; the later system is the first of a pair."""


@dataclass(frozen=True, slots=True)
class ComparisonPlan:
    """The columns of a comparison: systems and totals, pairs of systems and pairs of totals."""

    systems: Sequence[System]
    totals: Mapping[System, Sequence[System]]
    """The totals, each with its member systems."""
    pairs: Sequence[tuple[System, System]]
    total_pairs: Sequence[tuple[System, System]]

    @property
    def compared(self) -> list[tuple[System, System]]:
        """All pairs: of systems, then of totals."""
        return [*self.pairs, *self.total_pairs]

    @property
    def places(self) -> list[list[tuple[int, int]]]:
        """The indices in ``systems`` of each pair of `compared`; for totals, a pair of indices for each answerer."""
        places = {system: n for n, system in enumerate(self.systems)}
        members = {system: {system.answering: n} for system, n in places.items()}
        members |= {total: {s.answering: places[s] for s in group} for total, group in self.totals.items()}
        return [
            [(n, members[earlier][answerer]) for answerer, n in members[later].items()]
            for later, earlier in self.compared
        ]


@dataclass(frozen=True, slots=True)
class ResampledMeans:
    """Means and bootstrap means in one benchmark, by system, total or pair, and by `METRICS`.

    Arrays have the shape (places, 3); ``resampled``, ``regained`` and ``flipped`` have (resamples, places, 3).
    """

    means: Matrix
    resampled: Matrix
    gains: Matrix
    """Mean differences of pairs; the places of this field and those below are of pairs."""
    regained: Matrix
    """Bootstrap means of the differences."""
    flipped: Matrix
    """Means of the differences with signs flipped at random."""
    counts: Matrix
    """Number of questions in each mean."""
    unpaired: Matrix
    wins: Matrix
    losses: Matrix
    exact: Sequence[bool]
    """Whether McNemar's test applies to a pair: it has systems, not totals, and one benchmark."""

    def estimates(self, place: int) -> dict[Metric, Estimate | None]:
        """Return the estimates of a system or total by its index."""
        return {
            metric: _estimate(self.means[place, m], self.resampled[:, place, m]) for m, metric in enumerate(METRICS)
        }

    def differences(
        self, place: int, later: System, earlier: System, benchmark: str | None, simulated: bool
    ) -> Iterable[Difference]:
        """Yield the tested differences of a pair by its index, for each measure that both systems have."""
        for m, metric in enumerate(METRICS):
            pair = place, m
            if (estimate := _estimate(self.gains[pair], self.regained[:, place, m])) is None:
                continue
            counts = int(self.counts[pair]), int(self.unpaired[pair])
            test: Test = "mcnemar" if self.exact[place] and metric != "f1" else "sign_flip"
            if test == "mcnemar":
                p = stats.mcnemar(int(self.wins[pair]), int(self.losses[pair]))
            else:
                p = stats.flip_test(float(self.gains[pair]), self.flipped[:, place, m])
            yield Difference(later, earlier, benchmark, metric, simulated, *counts, estimate, test, p)


def _estimate(mean: float, resampled: Matrix) -> Estimate | None:
    value = float(mean)
    if np.isnan(value):
        return None
    low, high = stats.interval(value, resampled)
    return Estimate(*(round(number, _DIGITS) + 0.0 for number in (value, low, high)))


def make_plan(simulated: Mapping[System, bool], paired: Pairing) -> ComparisonPlan:
    """Plan the systems (``simulated`` has all), their totals, which never mix its values, and the pairs to compare."""
    systems = [*simulated]
    groups = group_totals(systems).items()
    totals = {total: members for total, members in groups if len({simulated[system] for system in members}) == 1}
    return ComparisonPlan(systems, totals, paired(systems), paired([*totals]))


def draw_sample(
    questions: Sequence[Questions], plan: ComparisonPlan, rng: np.random.Generator, resamples: int
) -> ResampledMeans:
    """Compute the means and resampled means of one benchmark; ``questions`` has the outcomes of each system."""
    ids = sorted(set().union(*questions))
    values = np.array([[_measured(by_key.get(id_)) for by_key in questions] for id_ in ids])
    pairs_in_order = list(dict.fromkeys(pair for members in plan.places for pair in members))
    later, earlier = [a for a, _ in pairs_in_order], [b for _, b in pairs_in_order]
    differences = values[:, later] - values[:, earlier]
    one_only = np.isnan(values[:, later]) != np.isnan(values[:, earlier])
    columns = np.concatenate([values, differences], axis=1).reshape(len(ids), -1)
    means, size = stats.column_means(columns).reshape(-1, 3), len(questions)
    resampled = stats.bootstrap_means(columns, rng, resamples).reshape(resamples, -1, 3)
    flipped = stats.flipped_means(differences.reshape(len(ids), -1), rng, resamples).reshape(resamples, -1, 3)
    place = {system: n for n, system in enumerate(plan.systems)}
    systems = [[n] for n in place.values()] + [[place[s] for s in members] for members in plan.totals.values()]
    pair_place = {pair: n for n, pair in enumerate(pairs_in_order)}
    pairs = [[pair_place[pair] for pair in members] for members in plan.places]
    return ResampledMeans(
        means=_aggregated(systems, means[:size]),
        resampled=_aggregated(systems, resampled[:, :size]),
        gains=_aggregated(pairs, means[size:]),
        regained=_aggregated(pairs, resampled[:, size:]),
        flipped=_aggregated(pairs, flipped),
        counts=_aggregated(pairs, (~np.isnan(differences)).sum(axis=0), np.sum),
        unpaired=_aggregated(pairs, one_only.sum(axis=0), np.sum),
        wins=_aggregated(pairs, (differences > 0).sum(axis=0), np.sum),
        losses=_aggregated(pairs, (differences < 0).sum(axis=0), np.sum),
        exact=[True] * len(plan.pairs) + [False] * len(plan.total_pairs),
    )


def _aggregated(groups: Sequence[Sequence[int]], columns: Matrix, reduce: Callable[..., Matrix] = np.mean) -> Matrix:
    """Combine the places of (…, places, 3) by groups of their indices; NaN if one of a group is NaN."""
    aggregates = [reduce(columns[..., list(group), :].astype(np.float64), axis=-2) for group in groups]
    return np.stack(aggregates, axis=-2) if aggregates else np.empty((*columns.shape[:-2], 0, 3))


def mean_sample(samples: Sequence[ResampledMeans]) -> ResampledMeans:
    """Return the mean of the benchmarks' samples; NaN where one of them lacks a value."""

    def stacked(reduce: Callable[..., Matrix], *names: str) -> dict[str, Matrix]:
        return {name: reduce([getattr(s, name) for s in samples], axis=0) for name in names}

    return ResampledMeans(
        **stacked(np.mean, "means", "resampled", "gains", "regained", "flipped"),
        **stacked(np.sum, "counts", "unpaired", "wins", "losses"),
        exact=samples[0].exact if len(samples) == 1 else [False] * len(samples[0].exact),
    )


def _measured(outcome: Outcome | None) -> tuple[float, float, float]:
    if outcome is None:
        return np.nan, np.nan, np.nan
    return outcome.exact_match, outcome.f1, {"correct": 1.0, "incorrect": 0.0}.get(outcome.verdict or "", np.nan)


RESAMPLES = 10_000


def compare(
    outcomes: Iterable[Outcome],
    seed: int = 0,
    resamples: int = RESAMPLES,
    paired: Pairing = pair_systems,
    ordered: Callable[[Iterable[System]], Sequence[System]] = sort_systems,
) -> Comparison:
    """Compare all systems that have ``outcomes``.

    ``seed`` and ``resamples`` (their number) are for the bootstrap and the sign flips; ``ordered`` sorts the systems,
    and ``paired`` chooses the pairs. Raises ``UserError`` if there are no outcomes.
    """
    by_system: dict[System, dict[str, Questions]] = {}
    keyed = numbered(outcomes, lambda o: (system_of(o), o.benchmark, o.question_id))
    for ((system, benchmark, id_), number), outcome in keyed:
        by_system.setdefault(system, {}).setdefault(benchmark, {})[id_, number] = outcome
    if not by_system:
        raise UserError("there are no outcomes to compare; run safe-stepwise evaluate_stepwise first")
    members = {
        system: {name: [*questions.values()] for name, questions in by_system[system].items()}
        for system in ordered(by_system)
    }
    simulated = {s: any(o.simulated for group in groups.values() for o in group) for s, groups in members.items()}
    plan = make_plan(simulated, paired)
    samples = _samples(by_system, plan, seed, resamples)
    benchmarks = tuple(name for name in samples if name is not None)
    members |= {total: _pooled([members[s] for s in systems]) for total, systems in plan.totals.items()}
    rows = [_row(system, groups, samples, place) for place, (system, groups) in enumerate(members.items())]
    simulated |= {row.system: row.simulated for row in rows}
    differences: list[Difference] = []
    for place, (later, earlier) in enumerate(plan.compared):
        for name, sample in samples.items():
            differences += sample.differences(place, later, earlier, name, simulated[later] or simulated[earlier])
    size = len(plan.systems)
    tested, totals = _adjusted(differences), tuple(rows[size:])
    return Comparison(benchmarks, tuple(rows[:size]), tested, seed, resamples, totals)


def _samples(
    by_system: Mapping[System, Mapping[str, Questions]], plan: ComparisonPlan, seed: int, resamples: int
) -> dict[str | None, ResampledMeans]:
    """Draw the sample of each benchmark; the key None has their mean."""
    samples: dict[str | None, ResampledMeans] = {}
    for name in sorted({name for by_benchmark in by_system.values() for name in by_benchmark}):
        questions = [by_system[system].get(name, {}) for system in plan.systems]
        samples[name] = draw_sample(questions, plan, np.random.default_rng([seed, *name.encode()]), resamples)
    return {**samples, None: mean_sample([*samples.values()])}


def _pooled(members: Sequence[Mapping[str, list[Outcome]]]) -> dict[str, list[Outcome]]:
    names = [name for name in members[0] if all(name in member for member in members)]
    return {name: [o for member in members for o in member[name]] for name in names}


def _row(
    system: System, groups: Mapping[str, list[Outcome]], samples: Mapping[str | None, ResampledMeans], place: int
) -> Row:
    outcomes = [outcome for group in groups.values() for outcome in group]
    attempts = [attempt for outcome in outcomes for attempt in outcome.trajectory.attempts]
    verdicts = (attempt.feedback for attempt in attempts)
    loop = statistics_of(outcomes)
    return Row(
        system=system,
        simulated=any(outcome.simulated for outcome in outcomes),
        verified=any(verdict and verdict.error_type != MALFORMED for verdict in verdicts),
        players=system.players_in(loop.calls),
        cells={name: _cell(group, samples[name].estimates(place)) for name, group in sorted(groups.items())},
        average=samples[None].estimates(place),
        loop=loop,
    )


def _cell(outcomes: Sequence[Outcome], estimates: Estimates) -> Cell:
    verdicts = [outcome.verdict for outcome in outcomes]
    unscored, unjudged = verdicts.count("unscored"), verdicts.count(None)
    failed = sum(outcome.trajectory.stop_reason == FAILED for outcome in outcomes)
    return Cell(len(verdicts), len(verdicts) - unscored - unjudged, unscored, unjudged, failed, estimates)


def _adjusted(differences: Sequence[Difference]) -> tuple[Difference, ...]:
    """Add Holm's p among all differences of one measure and benchmark, and round p values."""
    families = grouped(range(len(differences)), lambda n: (differences[n].benchmark, differences[n].metric))
    p_holm: dict[int, float] = {}
    for family in families.values():
        p_holm.update(zip(family, stats.holm([differences[n].p for n in family]), strict=True))
    return tuple(replace(d, p=stats.round_p(d.p), p_holm=stats.round_p(p_holm[n])) for n, d in enumerate(differences))
