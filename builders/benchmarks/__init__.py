"""Register the benchmarks that can be read, by the name that ``--benchmark`` takes; each has one line here."""

from collections.abc import Mapping
from typing import Any, Protocol

from builders.benchmarks import hotpotqa, musique, synthetic, twowiki
from safe_stepwise.errors import RowError
from safe_stepwise.records import Question
from safe_stepwise.store.fields import OTHER_BENCHMARK
from safe_stepwise.store.sizes import check_size


class Source(Protocol):
    """What the module of any source of questions says of it."""

    NAME: str
    LICENSE: str
    """Licence of the data, as a Hub licence id."""
    HOMEPAGE: str
    CITATION: str
    """BibTeX."""
    CAVEAT: str
    """What its labels or paths in particular can't tell, for the card; "" if nothing."""


class Benchmark(Source, Protocol):
    """What the module of a benchmark offers."""

    TELLTALE: str
    """A field that its rows have and the rows of the benchmarks above it in `BENCHMARKS` lack."""
    SCORING: str
    """The benchmark whose official scorer counts: one of `safe_stepwise.scoring.BENCHMARKS`."""
    EXPECTED: Mapping[str, Mapping[str, float]]
    """Expected calls and tokens (characters / 4) of a row's ``verification`` by a model, and of a question's
    ``verifier_steps``: a trajectory and four errors."""

    def parse(self, row: Mapping[str, Any], split: str) -> Question:
        """Parse one raw row; raise ``RowError`` with the reason if it is unusable."""


BENCHMARKS: dict[str, Benchmark] = {
    "hotpotqa": hotpotqa,
    "2wikimultihopqa": twowiki,
    "musique": musique,
    "synthetic": synthetic,
}


def expected_cost(name: str, stage: str) -> Mapping[str, float]:
    """Return a benchmark's `Benchmark.EXPECTED` of a stage; one of the user's own is taken to be like HotpotQA.

    >>> expected_cost("my-questions", "verification") == expected_cost("hotpotqa", "verification")
    True
    """
    return BENCHMARKS.get(name, BENCHMARKS[hotpotqa.NAME]).EXPECTED[stage]


def looks_like(row: Mapping[str, Any]) -> str | None:
    """Return the benchmark whose tell-tale field the row has, or None.

    >>> looks_like({"question": "?", "paragraphs": []})
    'musique'
    """
    # Later benchmarks come first, as their rows may have all fields of an earlier benchmark.
    matches = (name for name, benchmark in reversed(BENCHMARKS.items()) if benchmark.TELLTALE in row)
    return next(matches, None)


def parse_row(row: Mapping[str, Any], benchmark: str, split: str) -> Question:
    """Parse a raw row; raise ``RowError`` if it is unusable, looks like another benchmark's, or is too large."""
    lookalike = looks_like(row)
    if lookalike not in (None, benchmark):
        raise RowError(f"this looks like a {lookalike} row, not a {benchmark} one: {OTHER_BENCHMARK} {lookalike}")
    question = BENCHMARKS[benchmark].parse(row, split)
    check_size(question)
    return question
