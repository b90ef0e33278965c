"""The report's figures as PNG, scores with their margins: same numbers, same bytes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from textwrap import fill
from typing import Any

from evaluators.comparison.scores import AVERAGE, EARLY, Comparison, Failures, Row, categories, error_types
from evaluators.comparison.systems import LETTERS, System, names, swept, varying
from evaluators.outcomes import METRIC_NAMES, Metric, grouped
from safe_stepwise.methods import METHODS
from safe_stepwise.store.figures import COLORS, panels, text_on
from safe_stepwise.store.tables import NOTHING, mark
from safe_stepwise.taxonomy import category

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
    rows_by_answering = [[row for row in shown if row.system.answering == who] for who in answering]
    return panels(panel, [[mine] for mine in rows_by_answering], (9.0, 3.0), sharey="col")


def sweep_figure(rows: Sequence[Row], metric: Metric) -> bytes:
    """Average ``metric`` with its interval, and beside it the calls, by the option that changes.

    A line is a method with its players; one option changes along it (`swept`), by the others the
    lines differ in form. What has none of the option is a level.
    """
    along = swept([row.system for row in rows])

    def line_of(row: Row) -> System:
        options = tuple(o for o in row.system.options if o[0] != along.get(row.system.method))
        return replace(row.system, options=options)

    lines = grouped(rows, line_of)
    sweeps = [
        (who, option, {x: lines[x] for x in lines if x.answering == who and along.get(x.method, option) == option})
        for who in dict.fromkeys(line.answering for line in lines)
        for option in dict.fromkeys(along[x.method] for x in lines if x.method in along)
        if any(x.answering == who and along.get(x.method) == option for x in lines)
    ]

    def panel(axes: Any, item: tuple[str, str, dict[System, list[Row]], bool]) -> None:
        who, option, mine, is_calls = item
        marked = mark(any(row.simulated for rows in mine.values() for row in rows))
        if is_calls:
            _lines(axes, mine, option, lambda row: (row.loop.calls_per_question, 0.0, 0.0))
            axes.set_title(f"calls / question{marked}", fontsize=9)
            axes.set_ylim(bottom=0)
            _legend(axes)
        else:
            _lines(axes, mine, option, lambda row: _interval_at(row, None, metric) or (0.0, 0.0, 0.0))
            axes.set_title(f"{who}{marked}\naverage {METRIC_NAMES[metric]}, % (95% intervals)", fontsize=9)

    return panels(panel, [[(*sweep, False), (*sweep, True)] for sweep in sweeps], (5.4, 3.6), sharey="col")


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
    return dict(row.system.options).get(option, NOTHING)


def _values(lines: dict[System, list[Row]], option: str) -> list[Any]:
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

    return _error_panels(panel, rows, (9.0, 2.9))


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

    return _error_panels(panel, rows, (7.2, 2.9))


def _title(axes: Any, row: Row, names: Mapping[System, str], what: str) -> None:
    axes.set_title(f"{row.system.answering}\n{names[row.system]}: {what}", fontsize=9)
    axes.margins(y=0.12)
    axes.tick_params(labelbottom=True)  # a reader sees one panel at a time


def _error_panels(panel: Callable[[Any, Row], None], rows: Sequence[Row], size: tuple[float, float]) -> bytes:
    return panels(panel, [[row] for row in rows], size, sharex=True, sharey=True)


def failures_figure(methods: Sequence[Failures]) -> bytes:
    """The share of each category, a bar a method."""
    shown = categories(methods)

    def panel(axes: Any, methods: Sequence[Failures]) -> None:
        places = range(len(methods))
        left = [0.0] * len(methods)
        for name in shown:
            shares = [100 * method.category_share(name) for method in methods]
            axes.barh(places, shares, left=left, color=COLORS[name], label=name)
            for at, share in enumerate(shares):
                if share >= 4:
                    middle = left[at] + share / 2
                    axes.text(middle, at, f"{share:.1f}", ha="center", va="center", fontsize=7,
                              color=text_on(COLORS[name]))  # fmt: skip
            left = [so_far + share for so_far, share in zip(left, shares, strict=True)]
        axes.set_yticks(places, [f"{f.name}\n{f.types.total():,} steps at fault" for f in methods])
        axes.tick_params(axis="y", labelsize=7)
        axes.invert_yaxis()
        axes.set_xlabel("share of steps at fault, %")
        axes.legend(frameon=False, fontsize=7, ncols=len(shown), loc="lower center",
                    bbox_to_anchor=(0.5, 1.0))  # fmt: skip

    return panels(panel, [[methods]], (8.0, 1.2 + 0.55 * len(methods)))
