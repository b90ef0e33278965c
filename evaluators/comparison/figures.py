"""Draw the figures of a report as PNG, scores with their 95% intervals; equal numbers give equal bytes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from textwrap import fill
from typing import Any

from evaluators.comparison.scores import AVERAGE, EARLY, Comparison, Failures, Row, categories, error_types
from evaluators.comparison.systems import LETTERS, System, find_swept_options, name_options, name_systems
from evaluators.outcomes import METRIC_NAMES, Metric, grouped
from safe_stepwise.methods import METHODS
from safe_stepwise.store.figures import COLORS, panels, text_on
from safe_stepwise.store.tables import NOTHING, mark
from safe_stepwise.taxonomy import category

_PALETTE = ("#777777", "#ee7733", "#4477aa", "#aa3377", "#228833", "#66ccee", "#ccbb44", "#882255")
"""Colours of methods, in the order of their registry."""
_MARKERS = "osD^vP*X"
_HATCHES = ("", "///", "...", "xx", "\\\\\\")
"""Hatches of systems of one method, which share its colour."""
_SPREAD = 0.6
"""The share of the distance between two values over which points of lines spread, so that none hides another."""


def draw_scores(comparison: Comparison, rows: Sequence[Row], metric: Metric) -> bytes:
    """Draw ``metric`` of each system by benchmark with 95% intervals; each answerer has a panel, all on equal axes."""
    places: list[str | None] = [*comparison.benchmarks, None]
    labels = list(dict.fromkeys(comparison.names[row.system] for row in rows))
    looks = _looks(rows, comparison)

    def panel(axes: Any, group: Sequence[Row]) -> None:
        width = 0.84 / len(labels)
        for row in group:
            name = comparison.names[row.system]
            shift = width * (labels.index(name) + 0.5) - 0.42
            intervals = [_interval_at(row, place, metric) for place in places]
            positions = [n + shift for n, interval in enumerate(intervals) if interval]
            tops, below, above = zip(*(interval for interval in intervals if interval), strict=True)
            color, hatch = looks[name]
            axes.bar(positions, tops, width * 0.92, color=color, hatch=hatch, edgecolor="white", label=name)
            axes.errorbar(positions, tops, (below, above), fmt="none", ecolor="#333333", capsize=2, lw=1)
        axes.set_xticks(range(len(places)), [place or AVERAGE for place in places])
        axes.axvline(len(places) - 1.5, color="#dddddd", linewidth=1)
        axes.set_xlim(-0.5, len(places) - 0.5)
        axes.set_ylim(0, 100)
        axes.set_ylabel(f"{METRIC_NAMES[metric]}, %")
        marked = mark(any(row.simulated for row in group))
        axes.set_title(f"{group[0].system.answering}, with 95% intervals{marked}", fontsize=9)
        _legend(axes)

    drawn_rows = [row for row in rows if any(_interval_at(row, place, metric) for place in places)]
    answering = dict.fromkeys(row.system.answering for row in drawn_rows)
    rows_by_answering = [[row for row in drawn_rows if row.system.answering == answerer] for answerer in answering]
    return panels(panel, [[group] for group in rows_by_answering], (9.0, 3.0), sharey="col")


def draw_sweep(rows: Sequence[Row], metric: Metric) -> bytes:
    """Draw the average ``metric`` with its interval, and beside it the calls, along the swept option.

    A line is a method with its players; one option changes along it (`find_swept_options`), other options give
    lines other markers. A method without the option is a level.
    """
    along = find_swept_options([row.system for row in rows])

    def line_of(row: Row) -> System:
        options = tuple(o for o in row.system.options if o[0] != along.get(row.system.method))
        return replace(row.system, options=options)

    lines = grouped(rows, line_of)
    sweeps = [
        (name, option, {x: lines[x] for x in lines if x.answering == name and along.get(x.method, option) == option})
        for name in dict.fromkeys(line.answering for line in lines)
        for option in dict.fromkeys(along[x.method] for x in lines if x.method in along)
        if any(x.answering == name and along.get(x.method) == option for x in lines)
    ]

    def panel(axes: Any, item: tuple[str, str, dict[System, list[Row]], bool]) -> None:
        answerer, option, group, is_calls = item
        marked = mark(any(row.simulated for rows in group.values() for row in rows))
        if is_calls:
            _lines(axes, group, option, lambda row: (row.loop.calls_per_question, 0.0, 0.0))
            axes.set_title(f"calls / question{marked}", fontsize=9)
            axes.set_ylim(bottom=0)
            _legend(axes)
        else:
            _lines(axes, group, option, lambda row: _interval_at(row, None, metric) or (0.0, 0.0, 0.0))
            axes.set_title(f"{answerer}{marked}\naverage {METRIC_NAMES[metric]}, % (95% intervals)", fontsize=9)

    return panels(panel, [[(*sweep, False), (*sweep, True)] for sweep in sweeps], (5.4, 3.6), sharey="col")


def _lines(
    axes: Any, lines: dict[System, list[Row]], option: str, points: Callable[[Row], tuple[float, float, float]]
) -> None:
    """Draw each line over the values of an option; ``points`` returns height, and margin below and above."""
    values = _values(lines, option)
    line_names, shown_names = name_systems([*lines]), name_options(lines)
    forms = list(dict.fromkeys(line.describe(shown_names) for line in lines))
    for number, (line, rows) in enumerate(lines.items()):
        color = _color(line.method)
        marker = _MARKERS[forms.index(line.describe(shown_names)) % len(_MARKERS)]
        heights = {_value(row, option): points(row) for row in rows}
        if [*heights] == [NOTHING]:  # a level
            axes.axhline(heights[NOTHING][0], color=color, linestyle="--", lw=1, label=line_names[line])
            continue
        shift = _SPREAD * ((number + 0.5) / len(lines) - 0.5)
        ordered = [(n + shift, heights[value]) for n, value in enumerate(values) if value in heights]
        positions, intervals = zip(*ordered, strict=True)
        tops, below, above = zip(*intervals, strict=True)
        if any((*below, *above)):
            axes.errorbar(positions, tops, (below, above), fmt="none", ecolor=color, alpha=0.3, lw=1)
        axes.plot(positions, tops, marker=marker, ms=5, color=color, label=line_names[line], linewidth=1)
    axes.set_xticks(range(len(values)), [str(value) for value in values])
    axes.set_xlim(-0.5, len(values) - 0.5)
    axes.set_xlabel(LETTERS.get(option, option))


def _value(row: Row, option: str) -> Any:
    return dict(row.system.options).get(option, NOTHING)


def _values(lines: dict[System, list[Row]], option: str) -> list[Any]:
    value_sets = [{_value(row, option) for row in rows} for rows in lines.values()]
    values = set().union(*(value_set for value_set in value_sets if value_set != {NOTHING}))
    is_text = {value: not isinstance(value, int | float) for value in values}
    return sorted(values, key=lambda v: (is_text[v], 0 if is_text[v] else v, str(v)))


def _color(method: str) -> str:
    order = list(METHODS)
    return _PALETTE[(order.index(method) if method in order else len(order)) % len(_PALETTE)]


def _looks(rows: Sequence[Row], comparison: Comparison) -> dict[str, tuple[str, str]]:
    looks: dict[str, tuple[str, str]] = {}
    for row in rows:
        color = _color(row.system.method)
        same_color = sum(other_color == color for other_color, _ in looks.values())
        looks.setdefault(comparison.names[row.system], (color, _HATCHES[same_color % len(_HATCHES)]))
    return looks


def _interval_at(row: Row, place: str | None, metric: Metric) -> tuple[float, float, float] | None:
    """Return a score and its margins below and above, in percent; the average if ``place`` is None."""
    cell = row.cells.get(place) if place else None
    estimates = row.average if place is None else cell.estimates if cell else {}
    if (score := estimates.get(metric)) is None:
        return None
    return 100 * score.value, 100 * (score.value - score.low), 100 * (score.high - score.value)


def _legend(axes: Any) -> None:
    lines, labels = axes.get_legend_handles_labels()
    wrapped = [fill(name, 36) for name in labels]
    axes.legend(lines, wrapped, frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))


def draw_error_types(rows: Sequence[Row], names: Mapping[System, str]) -> bytes:
    """Draw the share of each error type among the attempts with an error, one panel for each system."""
    types = error_types(name for row in rows for name in row.loop.error_types)

    def panel(axes: Any, row: Row) -> None:
        counts = row.loop.error_types
        total = sum(counts.values())
        shares = [100 * counts.get(name, 0) / max(1, total) for name in types]
        axes.bar(range(len(types)), shares, color=[COLORS[category(name)] for name in types])
        axes.set_xticks(range(len(types)), [name.replace(" ", "\n") for name in types], fontsize=7)
        axes.set_ylabel("share of errors, %")
        for position, share in enumerate(shares):
            axes.text(position, share, f"{share:.1f}", ha="center", va="bottom", fontsize=7)
        _title(axes, row, names, f"{total:,} steps at fault")

    return panels(panel, [[row] for row in rows], (9.0, 2.9), sharex=True, sharey=True)


def draw_error_positions(rows: Sequence[Row], names: Mapping[System, str]) -> bytes:
    """Draw the attempts with an error by the number of their step, one panel for each system."""
    last_step = max((step for row in rows for step in row.loop.error_positions), default=1)

    def panel(axes: Any, row: Row) -> None:
        counts = row.loop.error_positions
        total = sum(counts.values())
        early = sum(count for position, count in counts.items() if position <= EARLY)
        axes.bar(range(1, last_step + 1), [counts.get(n, 0) for n in range(1, last_step + 1)], color="#4477aa")
        axes.set_xticks(range(1, last_step + 1))
        axes.set_xlabel("step")
        axes.set_ylabel("steps at fault")
        share = f"{100 * early / max(1, total):.1f}% in the first {EARLY} steps"
        _title(axes, row, names, share)

    return panels(panel, [[row] for row in rows], (7.2, 2.9), sharex=True, sharey=True)


def _title(axes: Any, row: Row, names: Mapping[System, str], detail: str) -> None:
    axes.set_title(f"{row.system.answering}\n{names[row.system]}: {detail}", fontsize=9)
    axes.margins(y=0.12)
    axes.tick_params(labelbottom=True)  # a reader sees one panel at a time


def draw_failures(methods: Sequence[Failures]) -> bytes:
    """Draw the share of each category of errors, one bar for each method."""
    names = categories(methods)

    def panel(axes: Any, methods: Sequence[Failures]) -> None:
        places = range(len(methods))
        starts = [0.0] * len(methods)
        for name in names:
            shares = [100 * method.category_share(name) for method in methods]
            axes.barh(places, shares, left=starts, color=COLORS[name], label=name)
            for row, share in enumerate(shares):
                if share >= 4:
                    middle = starts[row] + share / 2
                    axes.text(middle, row, f"{share:.1f}", ha="center", va="center", fontsize=7,
                              color=text_on(COLORS[name]))  # fmt: skip
            starts = [start + share for start, share in zip(starts, shares, strict=True)]
        axes.set_yticks(places, [f"{f.name}\n{f.types.total():,} steps at fault" for f in methods])
        axes.tick_params(axis="y", labelsize=7)
        axes.invert_yaxis()
        axes.set_xlabel("share of steps at fault, %")
        axes.legend(frameon=False, fontsize=7, ncols=len(names), loc="lower center",
                    bbox_to_anchor=(0.5, 1.0))  # fmt: skip

    return panels(panel, [[methods]], (8.0, 1.2 + 0.55 * len(methods)))
