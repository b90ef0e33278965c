"""A benchmark's calibration: its cases, judged by every judge, as tables and thresholds."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from safe_stepwise.checking.faithfulness.paper import SIGMA
from safe_stepwise.records import Triple
from studies.calibration.cases import Case, against_others, cases_of
from studies.calibration.passing import JudgeChain, judged, tables_of
from studies.calibration.pool import Pool
from studies.calibration.sources import Source
from studies.calibration.tables import Judge, Measured, Table, Threshold
from studies.calibration.thresholds import threshold_of

Bar = Callable[[Iterable[Case], str, int], Iterable[Case]]
"""Shows progress over cases: what is judged, and how many there are."""


def measure(
    benchmark: str,
    sources: Sequence[Source],
    judges: Sequence[Judge],
    judge_chain: JudgeChain,
    seed: int = 0,
    graph: Iterable[Triple] = (),
    left_out: Mapping[str, int] | None = None,
    bar: Bar = lambda cases, _, __: cases,
) -> Measured:
    """Calibrate on a benchmark's questions; ``graph``: what is true beside their gold paths."""
    facts = [t for source in sources for t in source.grounds.triples]
    made = cases_of(sources, Pool(facts, graph), seed)
    tables: list[Table] = []
    reported: list[Table] = []
    thresholds: list[Threshold] = []
    others, of_others = against_others(sources), dict[str, float]()
    for judge in judges:
        cases = bar(made.cases, f"{benchmark}: {judge.name}", len(made.cases))
        found = list(judged(judge, cases, judge_chain))
        tables += tables_of(judge, found)
        reported += tables_of(judge, [one for one in found if one.case.source.is_reported])
        if others:
            passed = [one.passes(SIGMA) for one in judged(judge, others, judge_chain)]
            of_others[judge.name] = round(sum(passed) / len(passed), 4)
        if judge.rule == "paper" and (threshold := threshold_of(judge, found)):
            thresholds.append(threshold)
    return Measured(
        benchmark,
        len(sources),
        left_out or {},
        made.not_made,
        tuple(tables),
        tuple(reported),
        tuple(thresholds),
        of_others,
    )
