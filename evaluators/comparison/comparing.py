"""Compare systems by their outcomes on the same questions: scores with intervals, and tested differences.

An *outcome* is a system's scored answer to one question (`systems`); `compare` does it all, in any order:

- Scores are means over a system's questions, in each benchmark and as the mean of the benchmarks (SAFE v1, Table 3); a
  system that lacks a benchmark has no such mean. Accuracy is the share of *scored* questions that the judge called
  correct. Unscored questions are counted, and are neither right nor wrong.
- Intervals are percentile bootstrap intervals over questions, drawn within each benchmark.
- Two paired systems are compared on the questions that both have. Differences of EM and accuracy in one benchmark are
  tested by McNemar's exact test; F1 and means of several benchmarks by flipping the signs of questions at random.
  Holm's adjustment counts all tests of one measure in one column.
- A total (`scores`) is a mean over answerers on each question that all of them have, tested by flips of signs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evaluators.comparison import significance as stats
from evaluators.comparison.scores import Cell, Comparison, Difference, Estimates, Row, Test
from evaluators.comparison.significance import Estimate, Matrix
from evaluators.comparison.systems import EVERY, System, group_totals, pair_systems, sort_systems, system_of
from evaluators.outcomes import METRICS, Metric, Outcome, grouped, numbered, statistics_of
from evaluators.uptake import count_uptake
from safe_stepwise.errors import UserError
from safe_stepwise.methods.loop import MALFORMED
from safe_stepwise.records import FAILED

_DIGITS = 6
"""Digits to which estimates are rounded, so that the order of a sum changes none."""
Questions = dict[tuple[str, int], Outcome]
"""A system's outcomes in one benchmark by question id and a number, which tells questions with the same id apart."""
Pairing = Callable[[Sequence[System]], Sequence[tuple[System, System]]]
"""A function from systems, in order, to the pairs to compare; the later system is the first of a pair."""
RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class ResampledMeans:
    """Means and bootstrap means, by system (totals last) or pair, and by `METRICS`.

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
    is_single: bool = True
    """Whether they are of one benchmark."""

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
            is_exact = self.is_single and metric != "f1" and later.answering != EVERY
            test: Test = "mcnemar" if is_exact else "sign_flip"
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


def draw_sample(
    questions: Sequence[Questions],
    totals: Iterable[Sequence[int]],
    pairs: Sequence[tuple[int, int]],
    rng: np.random.Generator,
    resamples: int,
) -> ResampledMeans:
    """Compute the means and resampled means of one benchmark.

    ``questions`` has the outcomes of each system. Totals come after the systems; ``totals`` has the places of each
    one's systems, and ``pairs`` the places of systems or totals to compare.
    """
    ids = sorted(set().union(*questions))
    values = np.array([[_measured(by_key.get(id_)) for by_key in questions] for id_ in ids])
    values = np.concatenate([values, *(values[:, members].mean(axis=1, keepdims=True) for members in totals)], axis=1)
    later, earlier = values[:, [a for a, _ in pairs]], values[:, [b for _, b in pairs]]
    differences, size = later - earlier, values.shape[1]
    columns = np.concatenate([values, differences], axis=1).reshape(len(ids), -1)
    means = stats.column_means(columns).reshape(-1, 3)
    resampled = stats.bootstrap_means(columns, rng, resamples).reshape(resamples, -1, 3)
    return ResampledMeans(
        means=means[:size],
        resampled=resampled[:, :size],
        gains=means[size:],
        regained=resampled[:, size:],
        flipped=stats.flipped_means(differences.reshape(len(ids), -1), rng, resamples).reshape(resamples, -1, 3),
        counts=(~np.isnan(differences)).sum(axis=0),
        unpaired=(np.isnan(later) != np.isnan(earlier)).sum(axis=0),
        wins=(differences > 0).sum(axis=0),
        losses=(differences < 0).sum(axis=0),
    )


def mean_sample(samples: Sequence[ResampledMeans]) -> ResampledMeans:
    """Return the mean of the benchmarks' samples; NaN where one of them lacks a value."""

    def stacked(reduce: Callable[..., Matrix], *names: str) -> dict[str, Matrix]:
        return {name: reduce([getattr(s, name) for s in samples], axis=0) for name in names}

    return ResampledMeans(
        **stacked(np.mean, "means", "resampled", "gains", "regained", "flipped"),
        **stacked(np.sum, "counts", "unpaired", "wins", "losses"),
        is_single=len(samples) == 1,
    )


def _measured(outcome: Outcome | None) -> tuple[float, float, float]:
    if outcome is None:
        return np.nan, np.nan, np.nan
    return outcome.exact_match, outcome.f1, {"correct": 1.0, "incorrect": 0.0}.get(outcome.verdict or "", np.nan)


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
    systems = [*members]
    # Totals never mix models and players.
    groups = {t: g for t, g in group_totals(systems).items() if len({simulated[system] for system in g}) == 1}
    places = {system: place for place, system in enumerate([*systems, *groups])}
    compared = [*paired(systems), *paired([*groups])]
    pairs = [(places[later], places[earlier]) for later, earlier in compared]
    totals = [[places[system] for system in group] for group in groups.values()]
    samples: dict[str | None, ResampledMeans] = {}
    for name in sorted({name for by_benchmark in by_system.values() for name in by_benchmark}):
        questions = [by_system[system].get(name, {}) for system in systems]
        rng = np.random.default_rng([seed, *name.encode()])
        samples[name] = draw_sample(questions, totals, pairs, rng, resamples)
    benchmarks = tuple(name for name in samples if name is not None)
    samples[None] = mean_sample([*samples.values()])
    members |= {total: _pooled([members[system] for system in group]) for total, group in groups.items()}
    rows = [_row(system, by_name, samples, places[system]) for system, by_name in members.items()]
    simulated |= {row.system: row.simulated for row in rows}
    differences: list[Difference] = []
    for place, (later, earlier) in enumerate(compared):
        for scope, sample in samples.items():
            is_simulated = simulated[later] or simulated[earlier]
            differences += sample.differences(place, later, earlier, scope, is_simulated)
    size = len(systems)
    return Comparison(benchmarks, tuple(rows[:size]), _adjusted(differences), seed, resamples, tuple(rows[size:]))


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
        uptake=count_uptake(outcomes),
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
