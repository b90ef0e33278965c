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
from dataclasses import replace

import numpy as np

from evaluators.comparison import significance as stats
from evaluators.comparison.columns import Pairing, Plan, Questions, Sample, Tested, mean_of, planned, sampled
from evaluators.comparison.scores import Cell, Comparison, Difference, Estimates, Row, Test
from evaluators.comparison.systems import System, in_order, pairs, system_of
from evaluators.outcomes import Outcome, statistics_of
from safe_stepwise.errors import UserError
from safe_stepwise.methods.loop import MALFORMED
from safe_stepwise.records import FAILED

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
    simulated = {s: any(map(_simulated, found.values())) for s, found in whole.items()}
    plan = planned(simulated, paired)
    samples = _samples(by_system, plan, seed, resamples)
    benchmarks = tuple(name for name in samples if name is not None)
    whole |= {total: _pooled([whole[s] for s in of]) for total, of in plan.totals.items()}
    rows = [_row(system, found, samples, at) for at, (system, found) in enumerate(whole.items())]
    simulated |= {row.system: row.simulated for row in rows}
    differences = [
        _difference(first, second, name, simulated[first] or simulated[second], found)
        for at, (first, second) in enumerate(plan.compared)
        for name, sample in samples.items()
        for found in sample.tested(at)
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


def _difference(first: System, second: System, benchmark: str | None, simulated: bool, found: Tested) -> Difference:
    test: Test = "mcnemar" if found.is_exact else "sign_flip"
    of = first, second, benchmark, found.metric, simulated, found.pairs, found.unpaired
    return Difference(*of, found.estimate, test, found.p)


def _pooled(members: Sequence[Mapping[str, list[Outcome]]]) -> dict[str, list[Outcome]]:
    """The outcomes of several systems by benchmark, as far as all of them have it."""
    names = [name for name in members[0] if all(name in found for found in members)]
    return {name: [o for found in members for o in found[name]] for name in names}


def _by_system(outcomes: Iterable[Outcome]) -> dict[System, dict[str, Questions]]:
    found: dict[System, dict[str, Questions]] = {}
    for o in outcomes:
        questions = found.setdefault(system_of(o), {}).setdefault(o.benchmark, {})
        copy = 0
        while (o.question_id, copy) in questions:
            copy += 1
        questions[o.question_id, copy] = o
    return found


def _simulated(outcomes: Iterable[Outcome]) -> bool:
    return any(outcome.simulated for outcome in outcomes)


def _row(system: System, found: Mapping[str, list[Outcome]], samples: Mapping[str | None, Sample], at: int) -> Row:
    outcomes = [outcome for own in found.values() for outcome in own]
    attempts = [attempt for outcome in outcomes for attempt in outcome.trajectory.attempts]
    said = (attempt.feedback for attempt in attempts)
    loop = statistics_of(outcomes)
    return Row(
        system=system,
        simulated=_simulated(outcomes),
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
    families: dict[tuple[str | None, str], list[int]] = {}
    for n, d in enumerate(differences):
        families.setdefault((d.benchmark, d.metric), []).append(n)
    p_holm: dict[int, float] = {}
    for family in families.values():
        p_holm.update(zip(family, stats.holm([differences[n].p for n in family]), strict=True))
    return tuple(replace(d, p=_short(d.p), p_holm=_short(p_holm[n])) for n, d in enumerate(differences))


def _short(p: float) -> float:
    """To six significant digits: a small p-value is not nothing."""
    return float(f"{p:.6g}")
