"""Measure the share of true and of false statements that pass each rule, and choose a threshold."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from builders.paths.world import COMPLETE, World
from evaluators.comparison.significance import Estimate, wilson
from safe_stepwise.checking.faithfulness.grounds import ChainVerdict, Rule, Verdict, fact_of
from safe_stepwise.checking.faithfulness.judging import judge_chain
from safe_stepwise.checking.faithfulness.paper import SIGMA
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS
from safe_stepwise.records import Triple
from safe_stepwise.store import progress
from studies.calibration.cases import (
    KINDS,
    SETTINGS,
    WRONG,
    CalibrationSource,
    ChainCase,
    ClaimKind,
    StepContext,
    make_cases,
)

SIGMAS = tuple(n / 100 for n in range(101))
"""The thresholds that are tried on the paper's rule."""


@dataclass(frozen=True, slots=True)
class ChainJudge:
    """A rule, with the retrieval that the paper's needs."""

    rule: Rule
    retrieval: str = ""

    @property
    def name(self) -> str:
        return f"{self.rule}, {self.retrieval}" if self.retrieval else self.rule


@dataclass(frozen=True, slots=True)
class PassRates:
    """The shares (0-1) of ``cases`` of one kind that a judge calls faithful (None without cases) or can't judge.

    ``repaired``: the share of false statements that retrieval matched to the true triple; None except for the paper's
    rule.
    """

    kind: ClaimKind
    cases: int
    passed: Estimate | None
    unjudgeable: float
    repaired: float | None = None


@dataclass(frozen=True, slots=True)
class ConfusionTable:
    """One judge's confusion table in a setting, at a threshold (None for the house rule)."""

    judge: str
    setting: StepContext
    sigma: float | None
    rows: tuple[PassRates, ...]

    @property
    def shares(self) -> dict[str, float]:
        """The share of cases that pass, by kind; kinds without cases are left out."""
        return {row.kind: row.passed.value for row in self.rows if row.passed}

    @property
    def balanced(self) -> float | None:
        """Balanced accuracy: the mean share of true cases that pass and of false ones that fail; None without both."""
        shares = self.shares
        wrong = [1 - shares[kind] for kind in WRONG if kind in shares]
        if "true" not in shares or not wrong:
            return None
        return round((shares["true"] + sum(wrong) / len(wrong)) / 2, 6)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "balanced_accuracy": self.balanced}


def list_judges(retrievals: Iterable[str]) -> list[ChainJudge]:
    """List the judges: the house rule, and the paper's with each retrieval."""
    return [ChainJudge("house"), *(ChainJudge("paper", name) for name in dict.fromkeys(retrievals))]


@dataclass(frozen=True, slots=True)
class Threshold:
    """The threshold σ that was chosen for the paper's rule, on cases of a single statement.

    ``curve``: balanced accuracy at each of `SIGMAS` on the half that σ is chosen on; ``chosen``: the σ with the
    highest (if several, the nearest to the paper's). The other fields are measured on the other half: balanced
    accuracy at the chosen σ and at the paper's; ``youden``: the share of true cases that pass minus the mean share of
    false ones.
    """

    judge: str
    chosen: float
    curve: tuple[float, ...]
    of_chosen: float
    of_paper: float
    youden: float
    true_passes: float
    wrong_tail_passes: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """The results on one benchmark: ``tables`` of all questions, ``reported`` of the half on which no σ was chosen.

    ``left_out``: numbers of questions by the reason that they were left out; ``not_made``: numbers of cases that could
    not be made, by context and kind.
    """

    benchmark: str
    questions: int
    left_out: Mapping[str, int]
    not_made: Counter[tuple[StepContext, ClaimKind]]
    tables: tuple[ConfusionTable, ...]
    reported: tuple[ConfusionTable, ...]
    thresholds: tuple[Threshold, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "questions": self.questions,
            "left_out": dict(sorted(self.left_out.items())),
            "not_made": {f"{s}: {kind}": n for (s, kind), n in sorted(self.not_made.items())},
            "tables": [table.as_json() for table in self.tables],
            "reported_half": [table.as_json() for table in self.reported],
            "thresholds": [asdict(threshold) for threshold in self.thresholds],
        }


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
    judge: ChainJudge, judged: Sequence[JudgedCase], setting: StepContext, sigma: float = SIGMA
) -> ConfusionTable:
    by_kind = {kind: [f for f in judged if (f.case.setting, f.case.kind) == (setting, kind)] for kind in KINDS}
    rows = tuple(_pass_rate(judge, kind, cases, sigma) for kind, cases in by_kind.items())
    return ConfusionTable(judge.name, setting, sigma if judge.rule == "paper" else None, rows)


def build_tables(judge: ChainJudge, judged: Sequence[JudgedCase]) -> list[ConfusionTable]:
    return [build_table(judge, judged, setting) for setting in SETTINGS]


def _pass_rate(judge: ChainJudge, kind: ClaimKind, judged: Sequence[JudgedCase], sigma: float) -> PassRates:
    rows = len(judged)
    if not rows:
        return PassRates(kind, 0, None, 0.0)
    unsure = sum(row.path == "unjudgeable" for row in judged) / rows
    repaired = sum(row.repaired for row in judged) / rows
    can_repair = judge.rule == "paper" and kind != "true"
    share = wilson(sum(row.passes(sigma) for row in judged), rows)
    return PassRates(kind, rows, share, round(unsure, 4), round(repaired, 4) if can_repair else None)


def choose_threshold(judge: ChainJudge, judged: Sequence[JudgedCase]) -> Threshold | None:
    """Choose the most accurate σ on half of the cases, and measure it on the others; None if a half lacks a kind."""
    developed, reported = ([c for c in judged if c.case.source.is_reported is half] for half in (False, True))
    curve = [_accuracy(judge, developed, sigma) for sigma in SIGMAS]
    if None in curve or _accuracy(judge, reported, SIGMA) is None:
        return None
    accuracies = [accuracy or 0.0 for accuracy in curve]
    best = max(accuracies)
    at_best = (sigma for sigma, value in zip(SIGMAS, accuracies, strict=True) if value == best)
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
    world = World([source.question for source in sources], graph, benchmark in COMPLETE)
    cases, impossible = make_cases(sources, world, seed)
    all_tables, reported, thresholds = list[ConfusionTable](), list[ConfusionTable](), list[Threshold]()
    for judge in judges:
        title, total = f"{benchmark}: {judge.name}", len(cases)
        judged = list(judge_cases(judge, progress.bar(cases, desc=title, total=total, unit="chain", delay=1)))
        all_tables += build_tables(judge, judged)
        reported += build_tables(judge, [row for row in judged if row.case.source.is_reported])
        if judge.rule == "paper" and (threshold := choose_threshold(judge, judged)):
            thresholds.append(threshold)
    results = tuple(all_tables), tuple(reported), tuple(thresholds)
    return Calibration(benchmark, len(sources), left_out or {}, impossible, *results)
