"""What is wrong with steps, by category, pooled over who answers (SAFE v1, Figures 3 and 4)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evaluators.comparison.scores import Comparison, Row
from evaluators.comparison.systems import EVERY, names
from safe_stepwise.store import published_tables
from safe_stepwise.store.names import marked
from safe_stepwise.store.tables import NOTHING, Table, percent
from safe_stepwise.taxonomy import CATEGORIES, CORRECT, ERROR_TYPES, MISSING_EVIDENCE, category

EARLY = 3
"""The steps that the papers call early (Figure 4)."""


def error_types(names: Iterable[str]) -> list[str]:
    """The taxonomy's ten, and `Missing Evidence` where it is among ``names``."""
    return [e.name for e in ERROR_TYPES] + [MISSING_EVIDENCE] * (MISSING_EVIDENCE in set(names))


@dataclass(frozen=True, slots=True)
class Failures:
    """The steps at fault of one method with its players, whoever answered."""

    name: str
    simulated: bool
    answering: tuple[str, ...]
    types: Counter[str]
    positions: Counter[int]

    def share(self, steps: int) -> float:
        """Of the steps at fault, so many."""
        return steps / max(1, self.types.total())

    def category_share(self, name: str) -> float:
        """The share of the steps whose fault is of a category."""
        return self.share(sum(steps for type_, steps in self.types.items() if category(type_) == name))

    @property
    def early(self) -> float:
        """The share of the first `EARLY` steps."""
        return self.share(sum(steps for position, steps in self.positions.items() if position <= EARLY))


def failures(comparison: Comparison) -> list[Failures]:
    """Of each that had a verifier; what no model said is not mixed with what models said."""
    groups: dict[Any, list[Row]] = {}
    for row in comparison.rows:
        if row.verified:
            groups.setdefault((row.system.answered_by(EVERY), row.simulated), []).append(row)
    titles = names([system for system, _ in groups])
    return [
        Failures(
            marked(titles[system], simulated),
            simulated,
            tuple(row.system.answering for row in rows),
            sum((Counter(row.loop.error_types) for row in rows), Counter()),
            sum((Counter(row.loop.error_positions) for row in rows), Counter()),
        )
        for (system, simulated), rows in groups.items()
    ]


def failure_table(methods: Sequence[Failures], papers: Iterable[str] = ()) -> Table:
    """The share of each category, and of the first steps; below what ``papers`` print."""
    shown = categories(methods)
    header = ("method", "over", "steps at fault", *(f"{name}, %" for name in shown))
    table: Table = [(*header, f"in the first {EARLY} steps, %")]
    for method in methods:
        shares = [*map(method.category_share, shown), method.early]
        table.append([method.name, ", ".join(method.answering), method.types.total(), *map(percent, shares)])
    for paper in papers:
        printed = [p for p in published_tables.published().failures if p.paper == paper]
        known = {p.category: f"{p.percent:.1f}" for p in printed}
        figures = " and ".join(p.figure for p in printed)
        name = f"SAFE (published: SAFE {paper}, Figures {figures})"
        table.append([name, NOTHING, NOTHING, *(known.get(name, NOTHING) for name in (*shown, ""))])
    return table


def failure_csv(methods: Sequence[Failures]) -> Table:
    """Steps at fault by category and type."""
    table: Table = [("method", "over", "category", "error_type", "steps", "percent", "simulated")]
    for method in methods:
        over, simulated = "; ".join(method.answering), str(method.simulated).lower()
        for name in error_types(method.types):
            steps = method.types[name]
            table.append([method.name, over, category(name), name, steps, percent(method.share(steps)), simulated])
    return table


def categories(methods: Iterable[Failures]) -> list[str]:
    """Those of errors; of missing evidence only where some was missing."""
    missing = any(method.types[MISSING_EVIDENCE] for method in methods)
    left_out = {CORRECT, *([] if missing else [MISSING_EVIDENCE])}
    return [name for name in CATEGORIES if name not in left_out]
