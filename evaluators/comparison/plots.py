"""The report's figures of errors as PNG: same numbers, same bytes."""

from collections.abc import Mapping, Sequence
from typing import Any

from evaluators.comparison.scores import Row
from evaluators.comparison.systems import System
from evaluators.comparison.tables import EARLY, error_types
from safe_stepwise.store.figures import COLORS, png
from safe_stepwise.taxonomy import category


def error_types_figure(rows: Sequence[Row], names: Mapping[System, str]) -> bytes:
    """The share of each error type among the steps at fault, one panel a system."""
    types = error_types(name for row in rows for name in row.loop.error_types)

    def panel(axes: Any, row: Row) -> None:
        found = row.loop.error_types
        total = sum(found.values())
        shares = [100 * found.get(name, 0) / max(1, total) for name in types]
        axes.bar(range(len(types)), shares, color=[COLORS[category(name)] for name in types])
        axes.set_xticks(range(len(types)), [name.replace(" ", "\n") for name in types], fontsize=7)
        axes.set_ylabel("share of errors, %")
        for at, share in enumerate(shares):
            axes.text(at, share, f"{share:.1f}", ha="center", va="bottom", fontsize=7)
        _title(axes, row, names, f"{total:,} steps at fault")

    return _panels(panel, rows, (9.0, 2.9))


def error_positions_figure(rows: Sequence[Row], names: Mapping[System, str]) -> bytes:
    """Steps at fault by their number, one panel a system."""
    last = max((step for row in rows for step in row.loop.error_positions), default=1)

    def panel(axes: Any, row: Row) -> None:
        found = row.loop.error_positions
        total = sum(found.values())
        early = sum(count for position, count in found.items() if position <= EARLY)
        axes.bar(range(1, last + 1), [found.get(n, 0) for n in range(1, last + 1)], color="#4477aa")
        axes.set_xticks(range(1, last + 1))
        axes.set_xlabel("step")
        axes.set_ylabel("steps at fault")
        share = f"{100 * early / max(1, total):.1f}% in the first {EARLY} steps"
        _title(axes, row, names, share)

    return _panels(panel, rows, (7.2, 2.9))


def _title(axes: Any, row: Row, names: Mapping[System, str], what: str) -> None:
    axes.set_title(f"{row.system.answering}\n{names[row.system]}: {what}", fontsize=9)
    axes.margins(y=0.12)


def _panels(panel: Any, items: Sequence[Any], size: tuple[float, float]) -> bytes:
    """One panel below the other, each of ``size``; all on the same axes, to be compared."""

    def draw(figure: Any) -> None:
        grid = figure.subplots(len(items), 1, sharex=True, sharey=True, squeeze=False)
        for axes, item in zip(grid[:, 0], items, strict=True):
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(labelbottom=True)  # a reader sees one panel at a time
            panel(axes, item)

    return png(draw, (size[0], size[1] * len(items)))
