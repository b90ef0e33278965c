"""The figures of a dataset card as PNG, drawn from a run's statistics: same numbers, same bytes."""

import math
from collections.abc import Mapping
from typing import Any

from safe_stepwise.store.figures import COLORS, png
from safe_stepwise.store.names import IDEAL, INJECTED, REFINED
from safe_stepwise.taxonomy import CATEGORIES, TAXONOMY, category

ORIGIN_COLORS = {IDEAL: "#bbbbbb", INJECTED: "#4477aa", REFINED: "#ee7733"}


def types_bars(types: Mapping[str, int]) -> bytes:
    """A bar for each type with its rows, by category; ``types`` are rows by type."""
    shown = [(e.name, types[e.name]) for e in TAXONOMY if types.get(e.name)]
    shown.sort(key=lambda item: CATEGORIES.index(category(item[0])))
    total = sum(number for _, number in shown)

    def draw(axes: Any) -> None:
        for kind in dict.fromkeys(category(name) for name, _ in shown):
            at = [n for n, (name, _) in enumerate(shown) if category(name) == kind]
            rows = [shown[n][1] for n in at]
            axes.barh(at, rows, 0.75, color=COLORS[kind], label=f"{kind}: {sum(rows):,}")
        for n, (_, number) in enumerate(shown):
            share = f" {number:,} ({100 * number / total:.1f}%)"
            axes.text(number, n, share, va="center", fontsize=8)
        axes.set_yticks(range(len(shown)), [name for name, _ in shown], fontsize=9)
        axes.invert_yaxis()
        axes.margins(x=0.2)
        axes.set_xlabel("rows")
        axes.set_title(f"{total:,} steps by error type")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))

    return png(lambda figure: draw(figure.add_subplot()), (8.0, 1.2 + 0.32 * len(shown)))


def positions_histogram(positions: Mapping[str, Mapping[str, int]]) -> bytes:
    """Rows by a step's position, stacked by origin; ``positions`` has counts by origin for each."""
    numbers = sorted(map(int, positions))

    def draw(axes: Any) -> None:
        bottom = [0] * len(numbers)
        for origin, color in ORIGIN_COLORS.items():
            heights = [positions[str(n)].get(origin, 0) for n in numbers]
            if any(heights):
                axes.bar(numbers, heights, bottom=bottom, label=origin, color=color, width=0.8)
            bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
        axes.set_xticks(numbers)
        axes.set_xlabel("position of the step")
        axes.set_ylabel("rows")
        axes.set_ylim(0, math.ceil(max(bottom, default=1) * 1.08))
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)

    return png(lambda figure: draw(figure.add_subplot()), (7.2, 3.6))
