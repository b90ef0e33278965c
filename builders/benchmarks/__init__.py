"""The benchmarks that can be read, by the name that ``--benchmark`` takes: one line each."""

from collections.abc import Mapping
from typing import Any, Protocol

from builders import synthetic
from builders.benchmarks import hotpotqa, musique, twowiki
from builders.work.fields import OTHER_BENCHMARK
from safe_stepwise.errors import RowError
from safe_stepwise.records import Question
from safe_stepwise.store.sizes import check_size


class Benchmark(Protocol):
    """What a benchmark's module offers: all that anyone needs to know of it."""

    NAME: str
    LICENSE: str
    """Licence of the data, as a Hub licence id."""
    HOMEPAGE: str
    CITATION: str
    """BibTeX."""
    HUB_IDS: tuple[str, ...]
    """Hub copies whose rows ``parse`` reads (``namespace/name[:config]``), for help texts."""
    TELLTALE: str
    """A field that its rows have and those of the benchmarks above it in `BENCHMARKS` lack."""
    SCORING: str
    """Whose official scorer counts: one of `safe_stepwise.scoring.BENCHMARKS`."""
    CAVEAT: str
    """What its labels can't tell, beyond what all can't; for the card, "" if nothing."""
    EXPECTED: Mapping[str, Mapping[str, float]]
    """Calls and tokens (characters / 4) of one row's ``verification`` by a model, and of making one
    question's ``verifier_steps``: a trajectory and four errors."""

    def parse(self, row: Mapping[str, Any], split: str) -> Question:
        """The Question of one raw row; RowError with the reason when it is unusable."""


BENCHMARKS: dict[str, Benchmark] = {
    "hotpotqa": hotpotqa,
    "2wikimultihopqa": twowiki,
    "musique": musique,
    "synthetic": synthetic,
}


def looks_like(row: Mapping[str, Any]) -> str | None:
    """The benchmark whose tell-tale field the row has, or None.

    >>> looks_like({"question": "?", "paragraphs": []})
    'musique'
    """
    # From the last: a benchmark in another's form has that one's fields and some of its own.
    matches = (name for name, benchmark in reversed(BENCHMARKS.items()) if benchmark.TELLTALE in row)
    return next(matches, None)


def parse_row(row: Mapping[str, Any], benchmark: str, split: str) -> Question:
    """The Question of a benchmark's raw row.

    ``split`` is a canonical split name. Raises RowError with the reason when the row is unusable,
    bears the tell-tale field of another benchmark, or is larger than anything real.
    """
    lookalike = looks_like(row)
    if lookalike not in (None, benchmark):
        raise RowError(f"this looks like a {lookalike} row, not a {benchmark} one: {OTHER_BENCHMARK} {lookalike}")
    question = BENCHMARKS[benchmark].parse(row, split)
    check_size(question)
    return question
