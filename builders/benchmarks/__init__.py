"""The benchmarks that can be read, by the name that ``--benchmark`` takes: one line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from builders import synthetic
from builders.benchmarks import hotpotqa, musique, twowiki
from safe_stepwise.records import Question


class Benchmark(Protocol):
    """What a benchmark's module offers."""

    NAME: str
    LICENSE: str
    """Licence of the data, as a Hub licence id."""
    HOMEPAGE: str
    CITATION: str
    """BibTeX."""
    HUB_IDS: tuple[str, ...]
    """Hub copies whose rows ``parse`` reads (``namespace/name[:config]``), for help texts."""

    def parse(self, row: Mapping[str, Any], split: str) -> Question:
        """The Question of one raw row; RowError with the reason when it is unusable."""


BENCHMARKS: dict[str, Benchmark] = {
    "hotpotqa": hotpotqa,
    "2wikimultihopqa": twowiki,
    "musique": musique,
    "synthetic": synthetic,
}
