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
- Where several answer, what ran with all of them has a total: the mean over who answers, question
  by question (SAFE v1, Table 3, *Total Average*), tested by flips of signs.

Nothing here depends on the order of the outcomes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evaluators.comparison import significance as stats
from evaluators.comparison.scores import Cell, Comparison, Difference, Estimates, Row, Test
from evaluators.comparison.significance import Estimate, Matrix
from evaluators.comparison.systems import System, in_order, pairs, shared_by_all, system_of
from evaluators.outcomes import METRICS, Metric, Outcome, grouped, numbered, statistics_of
from safe_stepwise.errors import UserError
from safe_stepwise.methods.loop import MALFORMED
from safe_stepwise.records import FAILED

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

    def differences(
        self, at: int, first: System, second: System, benchmark: str | None, simulated: bool
    ) -> Iterable[Difference]:
        """Of the pair in that place, measure by measure, as far as both have it."""
        for m, metric in enumerate(METRICS):
            pair = 3 * at + m
            estimate = _estimate(self.gains[pair], self.regained[:, pair])
            if estimate is None:
                continue
            counts = int(self.counts[pair]), int(self.unpaired[pair])
            test: Test = "mcnemar" if self.exact[at] and metric != "f1" else "sign_flip"
            if test == "mcnemar":
                p = stats.mcnemar(int(self.wins[pair]), int(self.losses[pair]))
            else:
                p = stats.flip_test(float(self.gains[pair]), self.flipped[:, pair])
            yield Difference(first, second, benchmark, metric, simulated, *counts, estimate, test, p)


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


RESAMPLES = 10_000


def compare(
    outcomes: Iterable[Outcome],
    seed: int = 0,
    resamples: int = RESAMPLES,
    paired: Pairing = pairs,
    ordered: Callable[[Iterable[System]], Sequence[System]] = in_order,
) -> Comparison:
    """All systems that ``outcomes`` know of, compared.

    ``seed`` and ``resamples`` are those of the bootstrap and of the sign flips; ``paired`` says
    which systems are compared, of those that ``ordered`` puts in order. Raises ``UserError`` if
    there are no outcomes.
    """
    by_system = _by_system(outcomes)
    if not by_system:
        raise UserError("there are no outcomes to compare; run safe-stepwise evaluate_stepwise first")
    whole = {
        system: {name: [*found.values()] for name, found in by_system[system].items()} for system in ordered(by_system)
    }
    simulated = {s: any(o.simulated for own in found.values() for o in own) for s, found in whole.items()}
    plan = planned(simulated, paired)
    samples = _samples(by_system, plan, seed, resamples)
    benchmarks = tuple(name for name in samples if name is not None)
    whole |= {total: _pooled([whole[s] for s in of]) for total, of in plan.totals.items()}
    rows = [_row(system, found, samples, at) for at, (system, found) in enumerate(whole.items())]
    simulated |= {row.system: row.simulated for row in rows}
    differences = [
        difference
        for at, (first, second) in enumerate(plan.compared)
        for name, sample in samples.items()
        for difference in sample.differences(at, first, second, name, simulated[first] or simulated[second])
    ]
    own = len(plan.systems)
    tested, totals = _adjusted(differences), tuple(rows[own:])
    return Comparison(benchmarks, tuple(rows[:own]), tested, seed, resamples, totals)


def _samples(
    by_system: Mapping[System, Mapping[str, Questions]], plan: Plan, seed: int, resamples: int
) -> dict[str | None, Sample]:
    found: dict[str | None, Sample] = {}
    for name in sorted({name for of in by_system.values() for name in of}):
        questions = [by_system[system].get(name, {}) for system in plan.systems]
        rng = np.random.default_rng([seed, *name.encode()])
        found[name] = sampled(questions, plan, rng, resamples)
    return {**found, None: mean_of([*found.values()])}


def _pooled(members: Sequence[Mapping[str, list[Outcome]]]) -> dict[str, list[Outcome]]:
    """The outcomes of several systems by benchmark, as far as all of them have it."""
    names = [name for name in members[0] if all(name in found for found in members)]
    return {name: [o for found in members for o in found[name]] for name in names}


def _by_system(outcomes: Iterable[Outcome]) -> dict[System, dict[str, Questions]]:
    found: dict[System, dict[str, Questions]] = {}
    for ((system, benchmark, id_), number), outcome in numbered(
        outcomes, lambda o: (system_of(o), o.benchmark, o.question_id)
    ):
        found.setdefault(system, {}).setdefault(benchmark, {})[id_, number] = outcome
    return found


def _row(system: System, found: Mapping[str, list[Outcome]], samples: Mapping[str | None, Sample], at: int) -> Row:
    outcomes = [outcome for own in found.values() for outcome in own]
    attempts = [attempt for outcome in outcomes for attempt in outcome.trajectory.attempts]
    said = (attempt.feedback for attempt in attempts)
    loop = statistics_of(outcomes)
    return Row(
        system=system,
        simulated=any(outcome.simulated for outcome in outcomes),
        verified=any(verdict and verdict.error_type != MALFORMED for verdict in said),
        players=system.asked(loop.calls),
        cells={name: _cell(own, samples[name].estimates(at)) for name, own in sorted(found.items())},
        average=samples[None].estimates(at),
        loop=loop,
    )


def _cell(outcomes: Sequence[Outcome], estimates: Estimates) -> Cell:
    verdicts = [outcome.verdict for outcome in outcomes]
    unscored, unjudged = verdicts.count("unscored"), verdicts.count(None)
    return Cell(
        questions=len(verdicts),
        scored=len(verdicts) - unscored - unjudged,
        unscored=unscored,
        unjudged=unjudged,
        failed=sum(o.trajectory.stop_reason == FAILED for o in outcomes),
        estimates=estimates,
    )


def _adjusted(differences: Sequence[Difference]) -> tuple[Difference, ...]:
    families = grouped(range(len(differences)), lambda n: (differences[n].benchmark, differences[n].metric))
    p_holm: dict[int, float] = {}
    for family in families.values():
        p_holm.update(zip(family, stats.holm([differences[n].p for n in family]), strict=True))
    return tuple(
        replace(d, p=stats.six_digits(d.p), p_holm=stats.six_digits(p_holm[n])) for n, d in enumerate(differences)
    )
