"""What a build of the path probe read, made and left out: ``statistics/path_probe.json``."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from builders.paths.rows import ProbeRow
from builders.work.plans import BuildRecord
from safe_stepwise.graphs.told import end_key, first_lost, named_in
from safe_stepwise.records import Triple

Counts = Mapping[str, Mapping[str, int]]
Pairs = Counter[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeStatistics(BuildRecord):
    """The record of one build; every mapping counts rows unless it says otherwise.

    ``left_out``: questions without rows, by benchmark and reason. ``refused``: corruptions that a question has none
    of, by kind and reason; ``drawn``: drafts that were refused on the way.
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
    made: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Rows by split, benchmark and kind."""
    lengths: Counter[tuple[str, int]] = field(default_factory=Counter)
    """By benchmark and number of triples."""
    marked: Counter[str] = field(default_factory=Counter)
    """By kind."""
    left_out: Pairs = field(default_factory=Counter)
    refused: Pairs = field(default_factory=Counter)
    drawn: Pairs = field(default_factory=Counter)

    def add(self, split: str, row: ProbeRow) -> None:
        """Count a row."""
        question = row.question
        self.made[split, question.benchmark, row.corruption] += 1
        self.marked[row.corruption] += is_marked(question.question, question.answer, row.path)
        self.lengths[question.benchmark, len(row.path)] += row.corruption == "valid"

    def count(self, *parts: str) -> int:
        """Rows that are of some split, benchmark and kind, each if it is named; of kind ``valid``: questions."""
        return sum(number for key, number in list(self.made.items()) if set(parts) <= set(key))

    def fields(self) -> dict[str, Any]:
        """The counts as `ProbeStatistics` has them."""
        splits, benchmarks, _ = (sorted(set(names)) for names in zip(*self.made, strict=True))
        return {
            "rows": self.count(),
            "questions": self.count("valid"),
            "splits": {name: {"rows": self.count(name), "questions": self.count(name, "valid")} for name in splits},
            "benchmarks": {
                name: {
                    "questions": self.count(name, "valid"),
                    **{kind: n for kind in sorted(self.marked) if (n := self.count(name, kind))},
                }
                for name in benchmarks
            },
            "lengths": _nested(+self.lengths),
            "marked": {kind: {"rows": self.count(kind), "marked": n} for kind, n in sorted(self.marked.items())},
            "left_out": _nested(self.left_out),
            "refused": _nested(self.refused),
            "drawn": _nested(self.drawn),
        }


def _nested(counts: Mapping[tuple[str, Any], int]) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for (outer, inner), number in sorted(counts.items()):
        nested.setdefault(outer, {})[str(inner)] = number
    return nested


def is_marked(question: str, answer: str, path: Sequence[Triple]) -> bool:
    """Whether a path looks wrong by its form alone: the probe that tries to cheat on the probe.

    It knows no fact. Marked is a path whose first triple names nothing of the question, in which a triple joins
    nothing named or told before it, or that does not name the answer. Whatever this gets right, a model can get right
    without knowing anything.

    >>> oru = Triple("Ana Vorr", "place of birth", "Oru")
    >>> question = "In which country was Ana Vorr born?"
    >>> is_marked(question, "Oru", [oru]), is_marked(question, "Kelvia", [oru])
    (False, True)
    """
    ends = {end_key(end) for triple in path for end in (triple.head, triple.tail)}
    sought = end_key(answer)
    return first_lost(path, named_in(question, path)) is not None or sought not in ends | {"yes", "no"}
