"""How well a checker finds the errors that were meant: precision and recall by type."""

from __future__ import annotations

from collections import Counter

from evaluators.labels.agreement import Score
from safe_stepwise.taxonomy import CORRECT, ERROR_TYPES

Pairs = Counter[tuple[str, str | None]]
"""How often an error was meant and one found, None where the checker abstained."""


def scores(benchmark: str, pairs: Pairs) -> list[tuple[object, ...]]:
    """Rows of a table with their header: each error type, then all of them."""
    rows: list[tuple[object, ...]] = [(benchmark, "errors", "precision", "recall", "abstains")]
    for entry in ERROR_TYPES:
        meant = sum(n for (one, _), n in pairs.items() if one == entry.name)
        found = sum(n for (_, one), n in pairs.items() if one == entry.name)
        rows.append(_row(Score(entry.name, pairs[entry.name, entry.name], meant, found), pairs))
    both = sum(n for (meant_, found_), n in pairs.items() if meant_ == found_)
    some = sum(n for (_, one), n in pairs.items() if one not in (None, CORRECT))
    return [*rows, _row(Score("all", both, sum(pairs.values()), some), pairs)]


def _row(score: Score, pairs: Pairs) -> tuple[object, ...]:
    silent = sum(n for (m, f), n in pairs.items() if f is None and score.name in (m, "all"))
    return (score.name, score.true, f"{score.precision:.3f}", f"{score.recall:.3f}", silent)


def told_of_ideal(ideal: Counter[str | None]) -> str:
    """How many ideal steps were called wrong."""
    false = sum(count for found, count in ideal.items() if found not in (CORRECT, None))
    return f"ideal steps: {sum(ideal.values()):,}, called wrong: {false}"
