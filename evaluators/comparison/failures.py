"""What is wrong with steps, by category, pooled over who answers (SAFE v1, Figures 3 and 4)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evaluators.comparison.scores import Comparison, Row
from evaluators.comparison.systems import names
from evaluators.comparison.tables import EARLY, EVERY, error_types
from safe_stepwise.store import published_tables
from safe_stepwise.store.figures import COLORS, png, text_on
from safe_stepwise.store.names import marked
from safe_stepwise.store.tables import NOTHING, Table, percent
from safe_stepwise.taxonomy import CATEGORIES, CORRECT, MISSING_EVIDENCE, category


@dataclass(frozen=True, slots=True)
class Failures:
    """The steps at fault of one method with its players, whoever answered."""

    name: str
    simulated: bool
    answering: tuple[str, ...]
    types: Counter[str]
    positions: Counter[int]

    @property
    def categories(self) -> Counter[str]:
        """Steps by the category of what is wrong with them."""
        found = Counter[str]()
        for name, count in self.types.items():
            found[category(name)] += count
        return found

    @property
    def early(self) -> int:
        """Of the first `EARLY` steps."""
        return sum(count for position, count in self.positions.items() if position <= EARLY)


def failures(comparison: Comparison) -> list[Failures]:
    """Of each that had a verifier; what no model said is not mixed with what models said."""
    groups: dict[Any, list[Row]] = {}
    for row in comparison.rows:
        if row.verified:
            groups.setdefault((row.system.answered_by(EVERY), row.simulated), []).append(row)
    told = names([system for system, _ in groups])
    return [
        Failures(
            marked(told[system], simulated),
            simulated,
            tuple(row.system.answering for row in rows),
            sum((Counter(row.loop.error_types) for row in rows), Counter()),
            sum((Counter(row.loop.error_positions) for row in rows), Counter()),
        )
        for (system, simulated), rows in groups.items()
    ]


def failure_table(found: Sequence[Failures], papers: Iterable[str] = ()) -> Table:
    """The share of each category, and of the first steps; below what ``papers`` print."""
    shown = _categories(found)
    header = ("method", "over", "steps at fault", *(f"{name}, %" for name in shown))
    table: Table = [(*header, f"in the first {EARLY} steps, %")]
    for one in found:
        whole = max(1, one.types.total())
        shares = [percent(one.categories[name] / whole) for name in shown]
        over = ", ".join(one.answering)
        table.append([one.name, over, one.types.total(), *shares, percent(one.early / whole)])
    for paper in papers:
        printed = [p for p in published_tables.published().failures if p.paper == paper]
        known = {p.category: f"{p.percent:.1f}" for p in printed}
        shares = [known.get(name, NOTHING) for name in (*shown, "")]
        figures = " and ".join(p.figure for p in printed)
        name = f"SAFE (published: SAFE {paper}, Figures {figures})"
        table.append([name, NOTHING, NOTHING, *shares])
    return table


def failure_csv(found: Sequence[Failures]) -> Table:
    """Steps at fault by category and type."""
    table: Table = [("method", "over", "category", "error_type", "steps", "percent", "simulated")]
    for one in found:
        whole = max(1, one.types.total())
        for name in error_types(one.types):
            count = one.types[name]
            cells = [category(name), name, count, percent(count / whole)]
            said = [one.name, "; ".join(one.answering)]
            table.append([*said, *cells, str(one.simulated).lower()])
    return table


def failures_figure(found: Sequence[Failures]) -> bytes:
    """The share of each category, a bar a method."""
    shown = _categories(found)

    def draw(figure: Any) -> None:
        axes = figure.add_subplot(1, 1, 1)
        axes.spines[["top", "right"]].set_visible(False)
        places = range(len(found))
        left = [0.0] * len(found)
        for name in shown:
            shares = [100 * f.categories[name] / max(1, f.types.total()) for f in found]
            axes.barh(places, shares, left=left, color=COLORS[name], label=name)
            for at, share in enumerate(shares):
                if share >= 4:
                    middle = left[at] + share / 2
                    axes.text(middle, at, f"{share:.1f}", ha="center", va="center", fontsize=7,
                              color=text_on(COLORS[name]))  # fmt: skip
            left = [so_far + share for so_far, share in zip(left, shares, strict=True)]
        axes.set_yticks(places, [f"{f.name}\n{f.types.total():,} steps at fault" for f in found])
        axes.tick_params(axis="y", labelsize=7)
        axes.invert_yaxis()
        axes.set_xlabel("share of steps at fault, %")
        axes.legend(frameon=False, fontsize=7, ncols=len(shown), loc="lower center",
                    bbox_to_anchor=(0.5, 1.0))  # fmt: skip

    return png(draw, (8.0, 1.2 + 0.55 * len(found)))


def _categories(found: Iterable[Failures]) -> list[str]:
    """Those of errors; of missing evidence only where some was missing."""
    missing = any(one.types[MISSING_EVIDENCE] for one in found)
    left_out = {CORRECT, *([] if missing else [MISSING_EVIDENCE])}
    return [name for name in CATEGORIES if name not in left_out]
