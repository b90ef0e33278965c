"""What share of true and of false statements pass each rule."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from evaluators.comparison.significance import wilson
from safe_stepwise.checking.faithfulness.chains import ChainVerdict, Verdict
from safe_stepwise.checking.faithfulness.names import fact_of
from safe_stepwise.checking.faithfulness.paper import SIGMA
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS
from studies.calibration.cases import Case
from studies.calibration.tables import KINDS, SETTINGS, Judge, Kind, Passed, Setting, Table

JudgeChain = Callable[..., ChainVerdict]
"""`checking.faithfulness.judging.judge_chain`, handed in."""


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


def judged(judge: Judge, cases: Iterable[Case], judge_chain: JudgeChain) -> Iterator[Found]:
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


def _passed(judge: Judge, kind: Kind, found: Sequence[Found], sigma: float) -> Passed:
    rows = len(found)
    if not rows:
        return Passed(kind, 0, None, 0.0)
    unsure = sum(one.path == "unjudgeable" for one in found) / rows
    repaired = sum(one.repaired for one in found) / rows
    asked = judge.rule == "paper" and kind != "true"
    share = wilson(sum(one.passes(sigma) for one in found), rows)
    return Passed(kind, rows, share, round(unsure, 4), round(repaired, 4) if asked else None)
