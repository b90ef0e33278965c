"""What share of true and of false statements pass each rule."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evaluators.calibration.cases import KINDS, SETTINGS, WRONG, Case, Kind, Setting
from evaluators.comparison.significance import Estimate, wilson
from safe_stepwise.checking.faithfulness.chains import ChainVerdict, Rule, Verdict
from safe_stepwise.checking.faithfulness.judging import judge_chain
from safe_stepwise.checking.faithfulness.names import fact_of
from safe_stepwise.checking.faithfulness.paper import SIGMA
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS

Half = bool
"""Whether it is the half of questions that is reported on."""
JudgeChain = Callable[..., ChainVerdict]


@dataclass(frozen=True, slots=True)
class Judge:
    """A rule, with the retrieval that the paper's needs."""

    rule: Rule
    retrieval: str = ""

    @property
    def name(self) -> str:
        """As tables call it."""
        return f"{self.rule}, {self.retrieval}" if self.retrieval else self.rule


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


@dataclass(frozen=True, slots=True)
class Passed:
    """Of ``cases`` of a kind, the share that is called faithful (None without any), and not judged.

    ``repaired``: the share for which retrieval takes the true triple; the paper's rule alone.
    """

    kind: Kind
    cases: int
    passed: Estimate | None
    unjudgeable: float
    repaired: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """One judge's confusion table in a setting, at a threshold (None for the house rule)."""

    judge: str
    setting: Setting
    sigma: float | None
    rows: tuple[Passed, ...]

    @property
    def shares(self) -> dict[str, float]:
        """The share of each kind that passes, where there are cases of it."""
        return {row.kind: row.passed.value for row in self.rows if row.passed}

    @property
    def balanced(self) -> float | None:
        """Balanced accuracy: the mean of what passes of true, and fails of false (kinds alike)."""
        return balanced(self.shares)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "balanced_accuracy": self.balanced}


def judges_of(retrievals: Iterable[str]) -> list[Judge]:
    """The house rule, and the paper's with each retrieval."""
    return [Judge("house"), *(Judge("paper", name) for name in dict.fromkeys(retrievals))]


def judged(
    judge: Judge, cases: Iterable[Case], judge_chain: JudgeChain = judge_chain
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
    rows = (_passed(judge, kind, [f for f in here if f.case.kind == kind], sigma) for kind in KINDS)
    return Table(judge.name, setting, sigma if judge.rule == "paper" else None, tuple(rows))


def tables_of(judge: Judge, found: Sequence[Found], sigma: float = SIGMA) -> list[Table]:
    """A judge's tables, of each setting."""
    return [table_of(judge, found, setting, sigma) for setting in SETTINGS]


def balanced(shares: dict[str, float]) -> float | None:
    """Balanced accuracy of the shares that pass, by kind; None without true or without false ones.

    >>> balanced({"true": 1.0, "wrong tail": 0.5, "reversed": 0.9})
    0.65
    """
    wrong = [1 - shares[kind] for kind in WRONG if kind in shares]
    if "true" not in shares or not wrong:
        return None
    return round((shares["true"] + sum(wrong) / len(wrong)) / 2, 6)


def _passed(judge: Judge, kind: Kind, found: Sequence[Found], sigma: float) -> Passed:
    rows = len(found)
    if not rows:
        return Passed(kind, 0, None, 0.0)
    unsure = sum(one.path == "unjudgeable" for one in found) / rows
    repaired = sum(one.repaired for one in found) / rows
    asked = judge.rule == "paper" and kind != "true"
    share = wilson(sum(one.passes(sigma) for one in found), rows)
    return Passed(kind, rows, share, round(unsure, 4), round(repaired, 4) if asked else None)
