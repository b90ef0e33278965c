"""The report's figures as PNG: same numbers, same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluators.comparison.cost_tables import error_types
from evaluators.comparison.systems import Metric, Row, System
from evaluators.comparison.tables import METHOD_NAMES, METRIC_NAMES, mark
from safe_stepwise.methods.running import LoopStatistics
from safe_stepwise.store.figures import COLORS, png
from safe_stepwise.taxonomy import category

_METHOD_COLORS = {
    "no_verification": "#777777",
    "self_verification": "#ee7733",
    "safe": "#4477aa",
}
_MARKERS = "osD^vP*X"
_EARLY = 3
"""The steps that the paper calls early (Figure 4)."""


def error_types_figure(
    rows: Sequence[Row], names: Mapping[System, str], loops: Mapping[System, LoopStatistics]
) -> bytes:
    """The share of each error type among the steps at fault, one panel a system."""

    def panel(axes: Any, row: Row) -> None:
        found = loops[row.system].error_types
        total = sum(found.values())
        types = error_types(found)
        shares = [100 * found.get(name, 0) / max(1, total) for name in types]
        axes.bar(range(len(types)), shares, color=[COLORS[category(name)] for name in types])
        axes.set_xticks(range(len(types)), [name.replace(" ", "\n") for name in types], fontsize=7)
        axes.set_ylabel("share of errors, %")
        for at, share in enumerate(shares):
            axes.text(at, share, f"{share:.1f}", ha="center", va="bottom", fontsize=7)
        _title(axes, row, names, f"{total:,} steps at fault")

    return _panels(panel, rows, (9.0, 2.9))


def error_positions_figure(
    rows: Sequence[Row], names: Mapping[System, str], loops: Mapping[System, LoopStatistics]
) -> bytes:
    """Steps at fault by their number, one panel a system."""

    def panel(axes: Any, row: Row) -> None:
        found = loops[row.system].error_positions
        total = sum(found.values())
        early = sum(count for position, count in found.items() if position <= _EARLY)
        last = max(found, default=1)
        axes.bar(range(1, last + 1), [found.get(n, 0) for n in range(1, last + 1)], color="#4477aa")
        axes.set_xticks(range(1, last + 1))
        axes.set_xlabel("step")
        axes.set_ylabel("steps at fault")
        share = f"{100 * early / max(1, total):.1f}% in the first {_EARLY} steps"
        _title(axes, row, names, share)

    return _panels(panel, rows, (7.2, 2.9))


def sweep_figure(
    rows: Sequence[Row], loops: Mapping[System, LoopStatistics], metric: Metric
) -> bytes:
    """Average ``metric`` with its interval against calls a question: a line a method and K."""
    generators = list(dict.fromkeys(row.system.generator for row in rows))

    def panel(axes: Any, generator: str) -> None:
        mine = [row for row in rows if row.system.generator == generator]
        verifiers = {r.system.verifier for r in mine if r.system.method == "safe"}
        lines: dict[tuple[str, str, int], list[Row]] = {}
        for row in sorted(mine, key=lambda r: r.system.max_retries):
            s = row.system
            lines.setdefault((s.method, s.verifier, s.max_steps), []).append(row)
        steps = sorted({k for *_, k in lines})
        for method, verifier, k in sorted(lines):
            name = METHOD_NAMES.get(method, method)
            name += f" with {verifier}" if method == "safe" and len(verifiers) > 1 else ""
            color = _METHOD_COLORS.get(method, "black")
            marker = _MARKERS[steps.index(k) % len(_MARKERS)]
            points = [_point(row, loops, metric) for row in lines[method, verifier, k]]
            x, y, below, above, retries = zip(*points, strict=True)
            axes.errorbar(x, y, (below, above), fmt="none", ecolor=color, alpha=0.25)
            axes.plot(x, y, marker=marker, color=color, label=f"{name}, K={k}", linewidth=1)
            for at, n in enumerate(retries):
                where = {"xytext": (3, 4), "textcoords": "offset points"}
                axes.annotate(str(n), (x[at], y[at]), fontsize=7, **where)
        axes.set_xlabel("calls / question")
        axes.set_ylabel(f"average {METRIC_NAMES[metric]}, %")
        axes.legend(frameon=False, fontsize=7)
        marked = mark(any(row.simulated for row in mine))
        axes.set_title(f"{generator}\nat each point N, with its 95% interval{marked}", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)

    return _panels(panel, generators, (7.2, 4.2))


def _point(
    row: Row, loops: Mapping[System, LoopStatistics], metric: Metric
) -> tuple[float, float, float, float, int]:
    """Calls a question, score, interval below and above it (all in percent), N."""
    score = row.average[metric]
    assert score is not None
    below, above = score.value - score.low, score.high - score.value
    calls = loops[row.system].calls_per_question
    return calls, 100 * score.value, 100 * below, 100 * above, row.system.max_retries


def _title(axes: Any, row: Row, names: Mapping[System, str], what: str) -> None:
    axes.set_title(f"{row.system.generator}\n{names[row.system]}: {what}", fontsize=9)
    axes.margins(y=0.12)
    axes.spines[["top", "right"]].set_visible(False)


def _panels(panel: Any, items: Sequence[Any], size: tuple[float, float]) -> bytes:
    """One panel below the other, each of ``size``."""

    def draw(figure: Any) -> None:
        for at, item in enumerate(items, 1):
            panel(figure.add_subplot(len(items), 1, at), item)

    return png(draw, (size[0], size[1] * len(items)))
