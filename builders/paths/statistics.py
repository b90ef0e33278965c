"""What a build of the path probe read, made and left out: ``statistics/path_probe.json``."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from builders.paths.form import is_marked
from builders.paths.rows import ProbeRow
from builders.work.plans import BuildRecord

Counts = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeStatistics(BuildRecord):
    """The record of one build; every mapping counts rows unless it says otherwise.

    ``left_out``: questions without rows, by benchmark and reason. ``refused``: corruptions that a
    question has none of, by kind and reason; ``drawn``: drafts that were refused on the way.
    """

    rows: int
    questions: int
    splits: Counts
    """Rows and questions of each split."""
    benchmarks: Counts
    """Questions and rows by kind."""
    lengths: Counts
    """Questions by benchmark, then the number of triples in their valid path."""
    marked: Counts
    """Rows by kind: all, and those that look wrong by their form alone."""
    left_out: Counts
    refused: Counts
    drawn: Counts
    verified: Sequence[Mapping[str, Any]]
    """The sources: benchmark, split, licence, digest of their record or file."""
    prompt_sha256: str


@dataclass(slots=True)
class Tally:
    """Counts as the rows are made."""

    read: int = 0
    """Questions with a path, before any is drawn."""
    rows: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By split and benchmark."""
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By benchmark and kind."""
    questions: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By split and benchmark."""
    lengths: Counter[tuple[str, int]] = field(default_factory=Counter)
    marked: Counter[str] = field(default_factory=Counter)
    """By kind."""
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    drawn: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, split: str, row: ProbeRow) -> None:
        """Count a row."""
        benchmark = row.asked.benchmark
        self.rows[split, benchmark] += 1
        self.kinds[benchmark, row.corruption] += 1
        self.marked[row.corruption] += is_marked(row.asked.question, row.asked.answer, row.path)
        if row.corruption == "valid":
            self.questions[split, benchmark] += 1
            self.lengths[benchmark, len(row.path)] += 1

    def fields(self) -> dict[str, Any]:
        """The counts, as fields of `ProbeStatistics`."""
        splits = sorted({split for split, _ in self.rows})
        benchmarks = sorted({name for _, name in self.rows})
        return {
            "rows": self.rows.total(),
            "questions": self.questions.total(),
            "splits": {
                split: {
                    "rows": sum(n for (s, _), n in self.rows.items() if s == split),
                    "questions": sum(n for (s, _), n in self.questions.items() if s == split),
                }
                for split in splits
            },
            "benchmarks": {
                name: {
                    "questions": sum(n for (_, b), n in self.questions.items() if b == name),
                    **{kind: n for (b, kind), n in sorted(self.kinds.items()) if b == name},
                }
                for name in benchmarks
            },
            "lengths": {
                name: {str(k): n for (b, k), n in sorted(self.lengths.items()) if b == name} for name in benchmarks
            },
            "marked": {
                kind: {"rows": sum(n for (_, k), n in self.kinds.items() if k == kind), "marked": n}
                for kind, n in sorted(self.marked.items())
            },
            "left_out": _nested(self.left_out),
            "refused": _nested(self.refused),
            "drawn": _nested(self.drawn),
        }


def _nested(counts: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (one, other), number in sorted(counts.items()):
        found.setdefault(one, {})[other] = number
    return found
