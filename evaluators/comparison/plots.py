"""The report's figures as PNG: same numbers, same bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evaluators.comparison.scores import METRIC_NAMES, Metric, Row
from evaluators.comparison.systems import LETTERS, System, names, swept, varying
from evaluators.comparison.tables import EARLY, error_types, mark
from safe_stepwise.methods import METHODS
from safe_stepwise.store.figures import COLORS, png
from safe_stepwise.taxonomy import category

_PALETTE = (
    "#777777", "#ee7733", "#4477aa", "#aa3377", "#228833", "#66ccee", "#ccbb44", "#882255",
)  # fmt: skip
"""Of methods, in the order of their registry."""
_MARKERS = "osD^vP*X"


def error_types_figure(rows: Sequence[Row], names: Mapping[System, str]) -> bytes:
    """The share of each error type among the steps at fault, one panel a system."""

    def panel(axes: Any, row: Row) -> None:
        found = row.loop.error_types
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


def error_positions_figure(rows: Sequence[Row], names: Mapping[System, str]) -> bytes:
    """Steps at fault by their number, one panel a system."""

    def panel(axes: Any, row: Row) -> None:
        found = row.loop.error_positions
        total = sum(found.values())
        early = sum(count for position, count in found.items() if position <= EARLY)
        last = max(found, default=1)
        axes.bar(range(1, last + 1), [found.get(n, 0) for n in range(1, last + 1)], color="#4477aa")
        axes.set_xticks(range(1, last + 1))
        axes.set_xlabel("step")
        axes.set_ylabel("steps at fault")
        share = f"{100 * early / max(1, total):.1f}% in the first {EARLY} steps"
        _title(axes, row, names, share)

    return _panels(panel, rows, (7.2, 2.9))


def sweep_figure(rows: Sequence[Row], metric: Metric) -> bytes:
    """Average ``metric`` with its interval against calls a question.

    A line is a method with its players; one option changes along it (`swept`), by the others the
    points differ in form.
    """
    along = swept([row.system for row in rows])
    lines: dict[System, list[Row]] = {}
    for row in rows:
        name = along.get(row.system.method)
        options = tuple(option for option in row.system.options if option[0] != name)
        lines.setdefault(replace(row.system, options=options), []).append(row)
    labels, told = names(list(lines)), varying(lines)
    forms = list(dict.fromkeys(line.told(told) for line in lines))

    def draw(axes: Any, line: System) -> None:
        color, form = _color(line.method), forms.index(line.told(told))
        x, y, below, above = zip(*(_point(r, metric) for r in lines[line]), strict=True)
        axes.errorbar(x, y, (below, above), fmt="none", ecolor=color, alpha=0.25)
        marker = _MARKERS[form % len(_MARKERS)]
        axes.plot(x, y, marker=marker, color=color, label=labels[line], linewidth=1)
        for at, row in enumerate(lines[line]):
            value = dict(row.system.options).get(along.get(line.method, ""), "")
            where = {"xytext": (3, 4), "textcoords": "offset points"}
            axes.annotate(str(value), (x[at], y[at]), fontsize=7, **where)

    def panel(axes: Any, answering: str) -> None:
        mine = [line for line in lines if line.answering == answering]
        for line in mine:
            draw(axes, line)
        axes.set_xlabel("calls / question")
        axes.set_ylabel(f"average {METRIC_NAMES[metric]}, %")
        axes.legend(frameon=False, fontsize=7)
        marked = mark(any(row.simulated for line in mine for row in lines[line]))
        point = " or ".join(dict.fromkeys(LETTERS.get(name, name) for name in along.values()))
        title = f"{answering}\nat each point {point}, with its 95% interval{marked}"
        axes.set_title(title, fontsize=9)

    return _panels(panel, list(dict.fromkeys(line.answering for line in lines)), (7.2, 4.2))


def _color(method: str) -> str:
    known = list(METHODS)
    return _PALETTE[(known.index(method) if method in known else len(known)) % len(_PALETTE)]


def _point(row: Row, metric: Metric) -> tuple[float, float, float, float]:
    """Calls a question, score, interval below and above it (all in percent)."""
    score = row.average[metric]
    assert score is not None
    below, above = score.value - score.low, score.high - score.value
    return row.loop.calls_per_question, 100 * score.value, 100 * below, 100 * above


def _title(axes: Any, row: Row, names: Mapping[System, str], what: str) -> None:
    axes.set_title(f"{row.system.answering}\n{names[row.system]}: {what}", fontsize=9)
    axes.margins(y=0.12)


def _panels(panel: Any, items: Sequence[Any], size: tuple[float, float]) -> bytes:
    """One panel below the other, each of ``size``."""

    def draw(figure: Any) -> None:
        for at, item in enumerate(items, 1):
            axes = figure.add_subplot(len(items), 1, at)
            axes.spines[["top", "right"]].set_visible(False)
            panel(axes, item)

    return png(draw, (size[0], size[1] * len(items)))
