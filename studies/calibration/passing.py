"""What share of true and of false statements pass each rule."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaluators.comparison.significance import wilson
from safe_stepwise.checking.faithfulness.grounds import ChainVerdict, Verdict, fact_of
from safe_stepwise.checking.faithfulness.judging import judge_chain
from safe_stepwise.checking.faithfulness.paper import SIGMA
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS
from safe_stepwise.records import Triple
from safe_stepwise.store import progress
from studies.calibration import tables
from studies.calibration.cases import Case, Pool, against_others, cases_of
from studies.calibration.sources import Source
from studies.calibration.tables import Judge, Kind, Measured, Passed, Setting, Table, Threshold


@dataclass(frozen=True, slots=True)
class Found:
    """What a judge makes of a case, whatever threshold.

    ``path`` is its verdict where every step's score is enough, ``least`` the lowest score;
    ``repaired``: the false statement stands for the true triple.
    """

    case: Case
    path: Verdict
    least: float
    repaired: bool

    def passes(self, sigma: float) -> bool:
        """Whether the chain is called faithful."""
        return self.path == "faithful" and self.least >= sigma


def judged(
    judge: Judge, cases: Iterable[Case], judge_chain: Callable[..., ChainVerdict] = judge_chain
) -> Iterator[Found]:
    """What a judge makes of cases, in order."""
    retrieval = RETRIEVALS[judge.retrieval] if judge.retrieval else None
    for case in cases:
        verdict = judge_chain(case.grounds, case.chain, judge.rule, retrieval, 0.0)
        scores = [step.score for step in verdict.steps if step.score is not None]
        matched = {fact_of(t) for step in verdict.steps for t in step.triples}
        repaired = bool(judge.retrieval) and case.kind != "true" and fact_of(case.fact) in matched
        yield Found(case, verdict.path, min(scores, default=1.0), repaired)


def table_of(judge: Judge, found: Sequence[Found], setting: Setting, sigma: float = SIGMA) -> Table:
    """A judge's table of the cases in a setting."""
    here = [one for one in found if one.case.setting == setting]
    rows = (_passed(judge, kind, [f for f in here if f.case.kind == kind], sigma) for kind in tables.KINDS)
    return Table(judge.name, setting, sigma if judge.rule == "paper" else None, tuple(rows))


def tables_of(judge: Judge, found: Sequence[Found], sigma: float = SIGMA) -> list[Table]:
    """A judge's tables, of each setting."""
    return [table_of(judge, found, setting, sigma) for setting in tables.SETTINGS]


def _passed(judge: Judge, kind: Kind, found: Sequence[Found], sigma: float) -> Passed:
    rows = len(found)
    if not rows:
        return Passed(kind, 0, None, 0.0)
    unsure = sum(one.path == "unjudgeable" for one in found) / rows
    repaired = sum(one.repaired for one in found) / rows
    asked = judge.rule == "paper" and kind != "true"
    share = wilson(sum(one.passes(sigma) for one in found), rows)
    return Passed(kind, rows, share, round(unsure, 4), round(repaired, 4) if asked else None)


def threshold_of(judge: Judge, found: Sequence[Found]) -> Threshold | None:
    """σ for a judge by the paper's rule; None where a half has no true or no false statements."""
    halves: tuple[list[Found], list[Found]] = ([], [])
    for one in found:
        halves[one.case.source.is_reported].append(one)
    developed, reported = halves
    curve = [_accuracy(judge, developed, sigma) for sigma in tables.SIGMAS]
    if None in curve or _accuracy(judge, reported, SIGMA) is None:
        return None
    known = [accuracy or 0.0 for accuracy in curve]
    best = max(known)
    at_best = (sigma for sigma, value in zip(tables.SIGMAS, known, strict=True) if value == best)
    chosen = min(at_best, key=lambda sigma: (abs(sigma - SIGMA), sigma))
    of_chosen = _accuracy(judge, reported, chosen) or 0.0
    shares = table_of(judge, reported, "alone", chosen).shares
    return Threshold(
        judge.name,
        chosen,
        tuple(known),
        of_chosen,
        _accuracy(judge, reported, SIGMA) or 0.0,
        round(2 * of_chosen - 1, 6),
        shares["true"],
        shares.get("wrong tail", 0.0),
    )


def _accuracy(judge: Judge, found: Sequence[Found], sigma: float) -> float | None:
    return table_of(judge, found, "alone", sigma).balanced


def measure(
    benchmark: str,
    sources: Sequence[Source],
    judges: Sequence[Judge],
    seed: int = 0,
    graph: Iterable[Triple] = (),
    left_out: Mapping[str, int] | None = None,
) -> Measured:
    """Calibrate on a benchmark's questions; ``graph``: what is true beside their gold paths."""
    facts = [t for source in sources for t in source.grounds.triples]
    cases, not_made = cases_of(sources, Pool(facts, graph), seed)
    tables: list[Table] = []
    reported: list[Table] = []
    thresholds: list[Threshold] = []
    others, of_others = against_others(sources), dict[str, float]()
    for judge in judges:
        what, total = f"{benchmark}: {judge.name}", len(cases)
        found = list(judged(judge, progress.bar(cases, desc=what, total=total, unit="chain", delay=1)))
        tables += tables_of(judge, found)
        reported += tables_of(judge, [one for one in found if one.case.source.is_reported])
        if others:
            passed = [one.passes(SIGMA) for one in judged(judge, others)]
            of_others[judge.name] = round(sum(passed) / len(passed), 4)
        if judge.rule == "paper" and (threshold := threshold_of(judge, found)):
            thresholds.append(threshold)
    return Measured(
        benchmark, len(sources), left_out or {}, not_made, tuple(tables), tuple(reported), tuple(thresholds), of_others
    )
