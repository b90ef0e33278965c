"""A benchmark's calibration: its cases, judged by every judge, as tables and thresholds."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluators.calibration.cases import Case, Kind, Setting, cases_of
from evaluators.calibration.passing import Judge, Table, judged, tables_of
from evaluators.calibration.pool import Pool
from evaluators.calibration.sources import Source
from evaluators.calibration.thresholds import Threshold, threshold_of
from safe_stepwise.records import Triple

Bar = Callable[[Iterable[Case], str, int], Iterable[Case]]
"""Shows progress over cases: what is judged, and how many there are."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a benchmark came to. ``reported``: the tables of the half that no σ was chosen on.

    ``left_out`` counts questions by why they were; ``not_made`` errors that no fact could have.
    """

    benchmark: str
    questions: int
    left_out: Mapping[str, int]
    not_made: Counter[tuple[Setting, Kind]]
    tables: tuple[Table, ...]
    reported: tuple[Table, ...]
    thresholds: tuple[Threshold, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "questions": self.questions,
            "left_out": dict(sorted(self.left_out.items())),
            "not_made": {f"{s}: {kind}": n for (s, kind), n in sorted(self.not_made.items())},
            "tables": [table.as_json() for table in self.tables],
            "reported_half": [table.as_json() for table in self.reported],
            "thresholds": [threshold.as_json() for threshold in self.thresholds],
        }


def measure(
    benchmark: str,
    sources: Sequence[Source],
    judges: Sequence[Judge],
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
    for judge in judges:
        cases = bar(made.cases, f"{benchmark}: {judge.name}", len(made.cases))
        found = list(judged(judge, cases))
        tables += tables_of(judge, found)
        reported += tables_of(judge, [one for one in found if one.case.source.is_reported])
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
    )
