"""The report's figures of scores as PNG, with their margins: same numbers, same bytes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from textwrap import fill
from typing import Any

from evaluators.comparison.scores import METRIC_NAMES, Comparison, Metric, Row
from evaluators.comparison.systems import LETTERS, System, names, swept, varying
from evaluators.comparison.tables import AVERAGE
from safe_stepwise.methods import METHODS
from safe_stepwise.store.figures import png
from safe_stepwise.store.tables import NOTHING, mark

_PALETTE = (
    "#777777", "#ee7733", "#4477aa", "#aa3377", "#228833", "#66ccee", "#ccbb44", "#882255",
)  # fmt: skip
"""Of methods, in the order of their registry."""
_MARKERS = "osD^vP*X"
_HATCHES = ("", "///", "...", "xx", "\\\\\\")
"""Of systems of one method, which have its colour."""
_SPREAD = 0.6
"""Of the room of a value, the part over which lines are spread, so that no point hides another."""


def scores_figure(comparison: Comparison, rows: Sequence[Row], metric: Metric) -> bytes:
    """The main comparison: ``metric`` of each system by benchmark, with its 95% intervals.

    One panel for each who answers, all on the same axes.
    """
    places: list[str | None] = [*comparison.benchmarks, None]
    told = list(dict.fromkeys(comparison.names[row.system] for row in rows))
    looks = _looks(rows, comparison)

    def panel(axes: Any, mine: Sequence[Row]) -> None:
        width = 0.84 / len(told)
        for row in mine:
            name = comparison.names[row.system]
            shift = width * (told.index(name) + 0.5) - 0.42
            found = [_interval_at(row, place, metric) for place in places]
            at = [n + shift for n, one in enumerate(found) if one]
            tops, below, above = zip(*(one for one in found if one), strict=True)
            color, hatch = looks[name]
            axes.bar(at, tops, width * 0.92, color=color, hatch=hatch, edgecolor="white", label=name)
            axes.errorbar(at, tops, (below, above), fmt="none", ecolor="#333333", capsize=2, lw=1)
        axes.set_xticks(range(len(places)), [place or AVERAGE for place in places])
        axes.axvline(len(places) - 1.5, color="#dddddd", linewidth=1)
        axes.set_xlim(-0.5, len(places) - 0.5)
        axes.set_ylim(0, 100)
        axes.set_ylabel(f"{METRIC_NAMES[metric]}, %")
        marked = mark(any(row.simulated for row in mine))
        axes.set_title(f"{mine[0].system.answering}, with 95% intervals{marked}", fontsize=9)
        _legend(axes)

    shown = [row for row in rows if any(_interval_at(row, place, metric) for place in places)]
    answering = dict.fromkeys(row.system.answering for row in shown)
    panels = [[row for row in shown if row.system.answering == who] for who in answering]
    return _grid([[partial(panel, mine=mine)] for mine in panels], (9.0, 3.0))


def sweep_figure(rows: Sequence[Row], metric: Metric) -> bytes:
    """Average ``metric`` with its interval, and beside it the calls, by the option that changes.

    A line is a method with its players; one option changes along it (`swept`), by the others the
    lines differ in form. What has none of the option is a level.
    """
    along = swept([row.system for row in rows])
    lines: dict[System, list[Row]] = {}
    for row in rows:
        options = tuple(o for o in row.system.options if o[0] != along.get(row.system.method))
        lines.setdefault(replace(row.system, options=options), []).append(row)
    panels = [
        (who, option)
        for who in dict.fromkeys(line.answering for line in lines)
        for option in dict.fromkeys(along[x.method] for x in lines if x.method in along)
        if any(x.answering == who and along.get(x.method) == option for x in lines)
    ]

    def cells(who: str, option: str) -> list[Callable[[Any], None]]:
        mine = {
            line: found
            for line, found in lines.items()
            if line.answering == who and along.get(line.method, option) == option
        }
        return [lambda axes: _score_lines(axes, mine, option, metric),
                lambda axes: _call_lines(axes, mine, option)]  # fmt: skip

    return _grid([cells(*panel) for panel in panels], (5.4, 3.6))


def _score_lines(axes: Any, lines: dict[System, list[Row]], option: str, metric: Metric) -> None:
    def points(row: Row) -> tuple[float, float, float]:
        found = _interval_at(row, None, metric)
        assert found
        return found

    _lines(axes, lines, option, points)
    marked = mark(any(row.simulated for rows in lines.values() for row in rows))
    who = next(iter(lines)).answering
    axes.set_title(f"{who}{marked}\naverage {METRIC_NAMES[metric]}, % (95% intervals)", fontsize=9)


def _call_lines(axes: Any, lines: dict[System, list[Row]], option: str) -> None:
    _lines(axes, lines, option, lambda row: (row.loop.calls_per_question, 0.0, 0.0))
    marked = mark(any(row.simulated for rows in lines.values() for row in rows))
    axes.set_title(f"calls / question{marked}", fontsize=9)
    axes.set_ylim(bottom=0)
    _legend(axes)


def _lines(
    axes: Any, lines: dict[System, list[Row]], option: str, points: Callable[[Row], tuple[float, float, float]]
) -> None:
    """Each line's points over the values of an option; ``points`` are heights with margins."""
    values = _values(lines, option)
    labels, told = names([*lines]), varying(lines)
    forms = list(dict.fromkeys(line.told(told) for line in lines))
    for number, (line, rows) in enumerate(lines.items()):
        color = _color(line.method)
        marker = _MARKERS[forms.index(line.told(told)) % len(_MARKERS)]
        known = {_value(row, option): points(row) for row in rows}
        if [*known] == [NOTHING]:  # a level
            axes.axhline(known[NOTHING][0], color=color, linestyle="--", lw=1, label=labels[line])
            continue
        shift = _SPREAD * ((number + 0.5) / len(lines) - 0.5)
        ordered = [(n + shift, known[value]) for n, value in enumerate(values) if value in known]
        at, found = zip(*ordered, strict=True)
        tops, below, above = zip(*found, strict=True)
        if any((*below, *above)):
            axes.errorbar(at, tops, (below, above), fmt="none", ecolor=color, alpha=0.3, lw=1)
        axes.plot(at, tops, marker=marker, ms=5, color=color, label=labels[line], linewidth=1)
    axes.set_xticks(range(len(values)), [str(value) for value in values])
    axes.set_xlim(-0.5, len(values) - 0.5)
    axes.set_xlabel(LETTERS.get(option, option))


def _value(row: Row, option: str) -> Any:
    """Of an option; of a run that had none, what tables show of it."""
    return dict(row.system.options).get(option, NOTHING)


def _values(lines: dict[System, list[Row]], option: str) -> list[Any]:
    """Of an option, numbers by their size before texts."""
    found = [{_value(row, option) for row in rows} for rows in lines.values()]
    values = set().union(*(one for one in found if one != {NOTHING}))
    is_text = {value: not isinstance(value, int | float) for value in values}
    return sorted(values, key=lambda v: (is_text[v], 0 if is_text[v] else v, str(v)))


def _color(method: str) -> str:
    known = list(METHODS)
    return _PALETTE[(known.index(method) if method in known else len(known)) % len(_PALETTE)]


def _looks(rows: Sequence[Row], comparison: Comparison) -> dict[str, tuple[str, str]]:
    """By a system's name its method's colour, and what sets it apart from others of that."""
    looks: dict[str, tuple[str, str]] = {}
    for row in rows:
        color = _color(row.system.method)
        alike = sum(known == color for known, _ in looks.values())
        looks.setdefault(comparison.names[row.system], (color, _HATCHES[alike % len(_HATCHES)]))
    return looks


def _interval_at(row: Row, place: str | None, metric: Metric) -> tuple[float, float, float] | None:
    """A score and its interval below and above it, in percent; of the average without a place."""
    cell = row.cells.get(place) if place else None
    found = row.average if place is None else cell.estimates if cell else {}
    score = found.get(metric)
    if score is None:
        return None
    return 100 * score.value, 100 * (score.value - score.low), 100 * (score.high - score.value)


def _legend(axes: Any) -> None:
    """Beside the axes, so that it covers no point; a long name leaves them room."""
    lines, told = axes.get_legend_handles_labels()
    wrapped = [fill(name, 36) for name in told]
    axes.legend(lines, wrapped, frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))


def _grid(cells: Sequence[Sequence[Callable[[Any], None]]], size: tuple[float, float]) -> bytes:
    """Panels of ``size``, row by row; those of a column are on the same y axis."""
    columns = max(map(len, cells))

    def draw(figure: Any) -> None:
        grid = figure.subplots(len(cells), columns, sharey="col", squeeze=False)
        for axes_of_row, panels in zip(grid, cells, strict=True):
            for axes, panel in zip(axes_of_row, panels, strict=True):
                axes.spines[["top", "right"]].set_visible(False)
                panel(axes)

    return png(draw, (size[0] * columns, size[1] * len(cells)))
