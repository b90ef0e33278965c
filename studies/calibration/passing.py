"""Measure the share of true and of false statements that pass each rule."""

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
from studies.calibration.cases import ChainCase, ErrorValues, leave_one_out_cases, make_cases
from studies.calibration.sources import CalibrationSource
from studies.calibration.tables import Calibration, ChainJudge, ConfusionTable, Threshold


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """A judge's verdict on a case, before any threshold is applied.

    ``path`` is the verdict if every score passes, ``least`` the lowest score of a triple (0-1; 1 without any);
    ``repaired``: the retrieval matched the false statement to the true triple.
    """

    case: ChainCase
    path: Verdict
    least: float
    repaired: bool

    def passes(self, sigma: float) -> bool:
        """Whether the chain is called faithful when the score of every triple must be at least ``sigma`` (0-1)."""
        return self.path == "faithful" and self.least >= sigma


def judge_cases(
    judge: ChainJudge, cases: Iterable[ChainCase], judge_chain: Callable[..., ChainVerdict] = judge_chain
) -> Iterator[JudgedCase]:
    """Yield a judge's verdict on each case, in order; tests replace ``judge_chain``."""
    retrieval = RETRIEVALS[judge.retrieval] if judge.retrieval else None
    for case in cases:
        verdict = judge_chain(case.grounds, case.chain, judge.rule, retrieval, 0.0)
        scores = [step.score for step in verdict.steps if step.score is not None]
        matched = {fact_of(t) for step in verdict.steps for t in step.triples}
        repaired = bool(judge.retrieval) and case.kind != "true" and fact_of(case.fact) in matched
        yield JudgedCase(case, verdict.path, min(scores, default=1.0), repaired)


def build_table(
    judge: ChainJudge, judged: Sequence[JudgedCase], setting: tables.StepContext, sigma: float = SIGMA
) -> ConfusionTable:
    by_kind = {kind: [f for f in judged if (f.case.setting, f.case.kind) == (setting, kind)] for kind in tables.KINDS}
    rows = tuple(_pass_rate(judge, kind, cases, sigma) for kind, cases in by_kind.items())
    return ConfusionTable(judge.name, setting, sigma if judge.rule == "paper" else None, rows)


def build_tables(judge: ChainJudge, judged: Sequence[JudgedCase]) -> list[ConfusionTable]:
    return [build_table(judge, judged, setting) for setting in tables.SETTINGS]


def _pass_rate(
    judge: ChainJudge, kind: tables.ClaimKind, judged: Sequence[JudgedCase], sigma: float
) -> tables.PassRates:
    rows = len(judged)
    if not rows:
        return tables.PassRates(kind, 0, None, 0.0)
    unsure = sum(row.path == "unjudgeable" for row in judged) / rows
    repaired = sum(row.repaired for row in judged) / rows
    can_repair = judge.rule == "paper" and kind != "true"
    share = wilson(sum(row.passes(sigma) for row in judged), rows)
    return tables.PassRates(kind, rows, share, round(unsure, 4), round(repaired, 4) if can_repair else None)


def choose_threshold(judge: ChainJudge, judged: Sequence[JudgedCase]) -> Threshold | None:
    """Choose the most accurate σ on half of the cases, and measure it on the others; None if a half lacks a kind."""
    developed, reported = ([c for c in judged if c.case.source.is_reported is half] for half in (False, True))
    curve = [_accuracy(judge, developed, sigma) for sigma in tables.SIGMAS]
    if None in curve or _accuracy(judge, reported, SIGMA) is None:
        return None
    accuracies = [accuracy or 0.0 for accuracy in curve]
    best = max(accuracies)
    at_best = (sigma for sigma, value in zip(tables.SIGMAS, accuracies, strict=True) if value == best)
    chosen = min(at_best, key=lambda sigma: (abs(sigma - SIGMA), sigma))
    of_chosen = _accuracy(judge, reported, chosen) or 0.0
    shares = build_table(judge, reported, "alone", chosen).shares
    of_paper, youden = _accuracy(judge, reported, SIGMA) or 0.0, round(2 * of_chosen - 1, 6)
    passes = shares["true"], shares.get("wrong tail", 0.0)
    return Threshold(judge.name, chosen, tuple(accuracies), of_chosen, of_paper, youden, *passes)


def _accuracy(judge: ChainJudge, judged: Sequence[JudgedCase], sigma: float) -> float | None:
    return build_table(judge, judged, "alone", sigma).balanced


def calibrate(
    benchmark: str,
    sources: Sequence[CalibrationSource],
    judges: Sequence[ChainJudge],
    seed: int = 0,
    graph: Iterable[Triple] = (),
    left_out: Mapping[str, int] | None = None,
) -> Calibration:
    """Measure which cases of a benchmark's questions pass each judge, and choose σ for the paper's rule.

    ``graph``: true facts beside the gold paths; ``left_out``: numbers of left-out questions by reason, for the result.
    """
    facts = [t for source in sources for t in source.grounds.triples]
    cases, impossible = make_cases(sources, ErrorValues(facts, graph), seed)
    all_tables, reported, thresholds = list[ConfusionTable](), list[ConfusionTable](), list[Threshold]()
    held_out, shares = leave_one_out_cases(sources), dict[str, float]()
    for judge in judges:
        title, total = f"{benchmark}: {judge.name}", len(cases)
        judged = list(judge_cases(judge, progress.bar(cases, desc=title, total=total, unit="chain", delay=1)))
        all_tables += build_tables(judge, judged)
        reported += build_tables(judge, [row for row in judged if row.case.source.is_reported])
        if held_out:
            passed = [row.passes(SIGMA) for row in judge_cases(judge, held_out)]
            shares[judge.name] = round(sum(passed) / len(passed), 4)
        if judge.rule == "paper" and (threshold := choose_threshold(judge, judged)):
            thresholds.append(threshold)
    results = tuple(all_tables), tuple(reported), tuple(thresholds)
    return Calibration(benchmark, len(sources), left_out or {}, impossible, *results, shares)
