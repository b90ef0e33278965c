"""The figures of a dataset card as PNG, drawn from a run's statistics: same numbers, same bytes."""

import math
from collections.abc import Mapping
from typing import Any

from safe_stepwise.store.figures import COLORS, png
from safe_stepwise.store.names import IDEAL, INJECTED, REFINED
from safe_stepwise.taxonomy import CATEGORIES, TAXONOMY, category

ORIGIN_COLORS = {IDEAL: "#bbbbbb", INJECTED: "#4477aa", REFINED: "#ee7733"}
_SMALL = 0.015
"""A wedge of less than this part of the ring has no room for its name."""


def types_ring(types: Mapping[str, int]) -> bytes:
    """A ring of error types (outside) by category (inside); ``types`` are rows by type."""
    shown = [(e.name, types[e.name]) for e in TAXONOMY if types.get(e.name)]
    shown.sort(key=lambda item: CATEGORIES.index(category(item[0])))
    inner: dict[str, int] = {}
    for name, number in shown:
        inner[category(name)] = inner.get(category(name), 0) + number
    total = sum(inner.values())

    def labels(counts: Mapping[str, int]) -> list[str]:
        return [
            f"{name}\n{count:,}" if count >= _SMALL * total else ""
            for name, count in counts.items()
        ]

    def shade(name: str, at: int) -> tuple[float, float, float]:
        from matplotlib.colors import to_rgb

        red, green, blue = to_rgb(COLORS[category(name)])
        mix = 0.15 + 0.12 * at
        return (red + (1 - red) * mix, green + (1 - green) * mix, blue + (1 - blue) * mix)

    def draw(axes: Any) -> None:
        edge = {"width": 0.32, "edgecolor": "white"}
        places = {c: [n for n, _ in shown if category(n) == c] for c in inner}
        colors = [shade(name, places[category(name)].index(name)) for name, _ in shown]
        axes.pie(
            [n for _, n in shown],
            radius=1.0,
            labels=labels(dict(shown)),
            colors=colors,
            wedgeprops=edge,
            textprops={"fontsize": 8},
            startangle=90,
        )
        axes.pie(
            list(inner.values()),
            radius=0.66,
            labels=[label.replace(" ", "\n") for label in labels(inner)],
            labeldistance=0.76,
            colors=[COLORS[c] for c in inner],
            wedgeprops=edge,
            textprops={"fontsize": 7, "ha": "center", "va": "center"},
            startangle=90,
        )
        axes.set_title(f"{total:,} steps by error type")

    return png(lambda figure: draw(figure.add_subplot()), (7.2, 6.4))


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
