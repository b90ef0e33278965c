"""Measure the share of true and of false statements that pass each rule, and choose a threshold of the paper's rule.

A *judge* is our own rule ("house"), which has no threshold σ, or the paper's with a retrieval ("paper, words").
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from builders.paths.world import COMPLETE, World
from evaluators.comparison.significance import Estimate, wilson
from safe_stepwise.checking.faithfulness import grounds, paper
from safe_stepwise.checking.faithfulness.judging import judge_chain
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS
from safe_stepwise.records import Triple
from safe_stepwise.store import progress
from studies.calibration.cases import ALONE, IN_PATH, TRUE, WRONG, CalibrationSource, ChainCase, make_cases
from studies.labels.published import is_held_out

HOUSE, PAPER = "house", "paper, "
SIGMAS = tuple(n / 100 for n in range(101))
"""The thresholds that are tried on the paper's rule."""


@dataclass(frozen=True, slots=True)
class ConfusionTable:
    """One judge's table in a setting, at a threshold (None for the house rule).

    ``passed``: the shares (0-1) of cases that are called faithful, by kind; ``repaired``: those of false statements
    that retrieval matched to the true triple; ``balanced``: the mean share of true cases that pass and of false ones
    that fail, None without both.
    """

    judge: str
    setting: str
    sigma: float | None
    cases: Mapping[str, int]
    passed: Mapping[str, Estimate]
    repaired: Mapping[str, float]
    unjudgeable: float
    balanced: float | None


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """A judge's verdict on a case if every score passes, and the lowest score of a triple (0-1; 1 without any)."""

    case: ChainCase
    path: grounds.Verdict
    least: float
    repaired: bool


def judge_cases(
    judge: str, cases: Iterable[ChainCase], judge_chain: Callable[..., grounds.ChainVerdict] = judge_chain
) -> Iterator[JudgedCase]:
    """Yield a judge's verdict on each case, in order; tests replace ``judge_chain``."""
    rule, _, retrieval = judge.partition(", ")
    for case in cases:
        verdict = judge_chain(case.source.grounds, case.chain, rule, RETRIEVALS.get(retrieval), 0.0)
        scores = [step.score for step in verdict.steps if step.score is not None]
        matched = {grounds.fact_of(triple) for step in verdict.steps for triple in step.triples}
        yield JudgedCase(case, verdict.path, min(scores, default=1.0), grounds.fact_of(case.fact) in matched)


def build_table(judge: str, judged: Iterable[JudgedCase], setting: str, sigma: float = paper.SIGMA) -> ConfusionTable:
    """Count the cases of a setting that pass when the score of every triple must be at least ``sigma`` (0-1)."""
    cases = [row for row in judged if row.case.setting == setting]
    groups = {kind: [row for row in cases if row.case.kind == kind] for kind in (TRUE, *WRONG)}
    passed = {kind: [row.path == "faithful" and row.least >= sigma for row in groups[kind]] for kind in groups}
    shares = {kind: wilson(sum(passes), len(passes)) for kind, passes in passed.items() if passes}
    failed = [1 - shares[kind].value for kind in WRONG if kind in shares]
    balanced = round((shares[TRUE].value + sum(failed) / len(failed)) / 2, 6) if TRUE in shares and failed else None
    return ConfusionTable(
        judge=judge,
        setting=setting,
        sigma=None if judge == HOUSE else sigma,
        cases={kind: len(group) for kind, group in groups.items()},
        passed=shares,
        repaired={kind: _share(row.repaired for row in groups[kind]) for kind in WRONG if judge != HOUSE},
        unjudgeable=_share(row.path == "unjudgeable" for row in cases),
        balanced=balanced,
    )


def _share(flags: Iterable[bool]) -> float:
    flags = list(flags)
    return round(sum(flags) / max(1, len(flags)), 4)


def choose_threshold(judge: str, judged: Sequence[JudgedCase]) -> dict[str, Any] | None:
    """Choose the most accurate σ on half of the questions, and measure it on the others; None if a half lacks a kind.

    Of equal ones it is the nearest to the paper's. ``curve`` has the balanced accuracy at each of `SIGMAS` on the half
    that σ is chosen on; all else is of the other half.
    """
    reported = [row for row in judged if is_held_out(row.case.source.question.id)]
    developed = [row for row in judged if not is_held_out(row.case.source.question.id)]
    curve = [build_table(judge, developed, ALONE, sigma).balanced or 0.0 for sigma in SIGMAS]
    of_paper, best = build_table(judge, reported, ALONE).balanced, max(curve)
    if not best or of_paper is None:
        return None
    at_best = (sigma for sigma, accuracy in zip(SIGMAS, curve, strict=True) if accuracy == best)
    chosen = min(at_best, key=lambda sigma: (abs(sigma - paper.SIGMA), sigma))
    table = build_table(judge, reported, ALONE, chosen)
    passes = {kind: share.value for kind, share in table.passed.items()}
    accuracies = {"of_chosen": table.balanced, "of_paper": of_paper, "curve": curve}
    return {"judge": judge, "chosen": chosen, **accuracies, "passes": passes}


def calibrate(
    benchmark: str,
    sources: Sequence[CalibrationSource],
    retrievals: Iterable[str],
    seed: int = 0,
    graph: Iterable[Triple] = (),
    left_out: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Measure which cases of a benchmark's questions pass each judge; ``graph`` has further true facts.

    The result has the numbers of questions, of those ``left_out`` by reason, and of cases ``not_made`` by setting and
    kind; `ConfusionTable`s; and the thresholds of `choose_threshold`.
    """
    world = World([source.question for source in sources], graph, benchmark in COMPLETE)
    cases, impossible = make_cases(sources, world, seed)
    tables, thresholds = list[dict[str, Any]](), list[dict[str, Any]]()
    for judge in dict.fromkeys((HOUSE, *(PAPER + name for name in retrievals))):
        bar = progress.bar(cases, desc=f"{benchmark}: {judge}", total=len(cases), unit="chain", delay=1)
        judged = list(judge_cases(judge, bar))
        tables += [asdict(build_table(judge, judged, setting)) for setting in (ALONE, IN_PATH)]
        if judge != HOUSE and (threshold := choose_threshold(judge, judged)):
            thresholds.append(threshold)
    counts = {"questions": len(sources), "left_out": dict(left_out or {}), "not_made": dict(impossible)}
    return {**counts, "tables": tables, "thresholds": thresholds}
