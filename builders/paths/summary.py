"""What the command says when a path probe is built."""

from pathlib import Path

from builders.paths.statistics import ProbeStatistics
from safe_stepwise.store.names import CORRUPTIONS, PATH_PROBE, REJECTS
from safe_stepwise.store.tables import table


def summary(output: Path, statistics: ProbeStatistics) -> str:
    """Rows by benchmark and kind, what was refused, and where it all is."""
    header = ("benchmark", "questions", *CORRUPTIONS)
    rows = [
        (name, of["questions"], *(of.get(kind, 0) for kind in CORRUPTIONS))
        for name, of in statistics.benchmarks.items()
    ]
    left = sum(n for of in statistics.left_out.values() for n in of.values())
    refused = sum(n for of in statistics.refused.values() for n in of.values())
    return "\n".join(
        [
            table([header, *rows]),
            "",
            f"{left:,} questions without a path and {refused:,} corruptions refused: {output / REJECTS}",
            f"{statistics.rows:,} rows of {statistics.questions:,} questions: {output / PATH_PROBE}",
        ]
    )
