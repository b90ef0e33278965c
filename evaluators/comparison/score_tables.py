"""The tables of scores: the paper's main table (SAFE v1, Table 3), its margins and its tests.

The papers' own rows have the form of our tables: shown beside ours, marked, and never tested, as they are of other
questions, another judge and other verifiers. A row is shown as far as its benchmarks are among ours, and its average
only beside averages of the same benchmarks.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from evaluators.comparison.scores import AVERAGE, Comparison, Difference, Row, bounds
from evaluators.comparison.significance import Estimate
from evaluators.comparison.systems import EVERY, System, names, varying
from evaluators.outcomes import METRIC_NAMES, METRICS, Metric
from safe_stepwise.errors import one_of
from safe_stepwise.methods import METHODS
from safe_stepwise.store import published_tables
from safe_stepwise.store.published_tables import BENCHMARKS, MAIN, PAPERS, PublishedScore
from safe_stepwise.store.published_tables import published as printed
from safe_stepwise.store.tables import NOTHING, Table, p_value, percent


def score_table(comparison: Comparison, published: Sequence[PublishedScore] = ()) -> Table:
    """EM, F1 and accuracy with their margins, and gains; a block for each who answers, then totals.

    Published rows stand under ours of the same generator, or below all.
    """
    table: Table = [(comparison.answering, "method", *_score_header(comparison))]
    beside = published_lines(published, comparison.benchmarks)
    for answering, rows in groupby(comparison.rows, lambda row: row.system.answering):
        table += [line for row in rows for line in _score_lines(comparison, row)]
        same = beside.pop(spelled(answering), [])
        table += [(answering, name, *cells) for _, name, cells in same]
    table += [line for row in comparison.totals for line in _score_lines(comparison, row)]
    return table + [(who, name, *cells) for found in beside.values() for who, name, cells in found]


def _score_lines(comparison: Comparison, row: Row) -> Iterable[list[object]]:
    system, name = row.system, comparison.names[row.system]
    yield [system.answering, name, *(_with_margin(e) for e in _scores(comparison, row))]
    if comparison.against(system):
        gains = [_with_margin(e, "+") for e in _gains(comparison, row)]
        yield [system.answering, f"Δ {name} {over(comparison, system)}", *gains]


def interval_table(comparison: Comparison) -> Table:
    """The 95% confidence intervals of `score_table`."""
    names = comparison.names
    rows = (
        (row.system.answering, names[row.system], *map(_interval, _scores(comparison, row)))
        for row in (*comparison.rows, *comparison.totals)
    )
    return [(comparison.answering, "method", *_score_header(comparison)), *rows]


def difference_table(comparison: Comparison) -> Table:
    """Each pair of systems in each benchmark: difference, interval, p, Holm's p."""
    names = comparison.names
    tested = {(d.first, d.second, d.benchmark, d.metric): d for d in comparison.differences}
    places = dict.fromkeys((d.first, d.second, d.benchmark) for d in comparison.differences)
    header = [comparison.answering, "difference", "benchmark", "pairs", "unpaired"]
    for metric in METRICS:
        name = METRIC_NAMES[metric]
        header += [f"Δ {name}", "95% CI", f"p ({name})", "p, Holm"]
    table: Table = [header]
    for first, second, benchmark in places:
        found = [tested.get((first, second, benchmark, metric)) for metric in METRICS]
        known = next(d for d in found if d)  # that of EM, of all questions
        what = f"{names[first]} − {names[second]}"
        tests = [cell for d in found for cell in (_test_cells(d) if d else [NOTHING] * 4)]
        place = benchmark or AVERAGE
        table.append([first.answering, what, place, known.pairs, known.unpaired, *tests])
    return table


def score_csv(comparison: Comparison, published: Sequence[PublishedScore] = ()) -> Table:
    """`score_table` for machines: values in percent, then intervals, then counts."""
    places = [*comparison.benchmarks, AVERAGE]
    columns = [f"{place}_{metric}" for place in places for metric in METRICS]
    bounds = [f"{column}_{bound}" for column in columns for bound in ("low", "high")]
    counted = ("questions", "scored", "unscored", "failed")
    counts = [f"{name}_{count}" for name in comparison.benchmarks for count in counted]
    table: Table = [(*comparison.columns, "row", *columns, *bounds, *counts)]
    for row, of in [*((r, "") for r in comparison.rows), *((r, "total ") for r in comparison.totals)]:
        estimates = _scores(comparison, row)
        cells = [row.cells.get(name) for name in comparison.benchmarks]
        numbers = [getattr(cell, count) if cell else 0 for cell in cells for count in counted]
        table.append([*comparison.described(row), f"{of}score", *_values(estimates), *numbers])
        if comparison.against(row.system):
            gains = _gains(comparison, row)
            name = f"{of}delta {over(comparison, row.system)}"
            table.append([*comparison.described(row), name, *_values(gains), *[""] * len(counts)])
    for found in published_lines(published, comparison.benchmarks).values():
        for who, name, shown in found:
            known = [who, *[""] * (len(comparison.columns) - 2), "false"]
            values = [cell.replace(NOTHING, "") for cell in shown]
            table.append([*known, name, *values, *[""] * len([*bounds, *counts])])
    return table


def difference_csv(comparison: Comparison) -> Table:
    """All differences for machines, in percentage points."""
    # What two systems that are compared can differ in, of the columns there are.
    may = varying(row.system for row in comparison.rows)
    told = {"method", *may, *(r for row in comparison.rows for r in [*row.players][1:])}
    columns = comparison.columns
    second = [n for n, name in enumerate(columns) if name in told]
    table: Table = [
        (*columns, *(f"than_{columns[n]}" for n in second), "benchmark", "metric", "pairs",
         "unpaired", "delta", "low", "high", "test", "p", "p_holm")
    ]  # fmt: skip
    rows = (*comparison.rows, *comparison.totals)
    cells = {row.system: comparison.described(row) for row in rows}
    for d in comparison.differences:
        of = [*cells[d.first][:-1], "true" if d.simulated else "false"]
        other = [cells[d.second][n] for n in second]
        place = [d.benchmark or AVERAGE, d.metric, d.pairs, d.unpaired]
        table.append([*of, *other, *place, *_values([d.estimate]), d.test, d.p, d.p_holm])
    return table


def over(comparison: Comparison, system: System) -> str:
    """What each measure's gain is over, with its options where they are others."""
    by_baseline: dict[str, list[str]] = {}
    for metric, other in comparison.against(system).items():
        if other:
            by_baseline.setdefault(_against(other, system), []).append(METRIC_NAMES[metric])
    if not by_baseline:
        return "over no baseline"
    if len(by_baseline) == 1:
        return f"over {next(iter(by_baseline))}"
    return "over " + ", ".join(f"{b} ({', '.join(m)})" for b, m in by_baseline.items())


def _against(other: System, system: System) -> str:
    """What a system is set against, in words: by its given name, or by what is another there."""
    if other.method == system.method:
        return names([other, system])[other]
    told = other.told(varying([other, system]))
    return ", ".join(filter(None, (other.title, told)))


def _score_header(comparison: Comparison) -> list[str]:
    places = [*comparison.benchmarks, AVERAGE]
    return [f"{place} {METRIC_NAMES[metric]}" for place in places for metric in METRICS]


def _scores(comparison: Comparison, row: Row) -> list[Estimate | None]:
    cells = [row.cells.get(name) for name in comparison.benchmarks]
    places = [*(cell.estimates if cell else {} for cell in cells), row.average]
    return [estimates.get(metric) for estimates in places for metric in METRICS]


def _gains(comparison: Comparison, row: Row) -> list[Estimate | None]:
    better = {metric: comparison.against(row.system).get(metric) for metric in METRICS}
    found = (
        comparison.difference(row.system, baseline, place, metric) if baseline else None
        for place in (*comparison.benchmarks, None)
        for metric, baseline in better.items()
    )
    return [gain.estimate if gain else None for gain in found]


def _with_margin(estimate: Estimate | None, sign: str = "") -> str:
    if estimate is None:
        return NOTHING
    return f"{percent(estimate.value, sign)} ±{percent((estimate.high - estimate.low) / 2)}"


def _interval(estimate: Estimate | None, sign: str = "") -> str:
    if estimate is None:
        return NOTHING
    return f"{percent(estimate.low, sign)} to {percent(estimate.high, sign)}"


def _test_cells(d: Difference) -> list[object]:
    value = percent(d.estimate.value, "+")
    return [value, _interval(d.estimate, "+"), p_value(d.p), p_value(d.p_holm)]


def _values(estimates: Sequence[Estimate | None]) -> list[str]:
    found = [bounds(estimate) for estimate in estimates]
    return [value for value, *_ in found] + [b for _, *both in found for b in both]


_PRINTED: Mapping[Metric, str] = {"exact_match": "em", "f1": "f1", "accuracy": "acc"}
_TITLES = {"ircot": "IRCoT", "trace": "TRACE"}
_TUNED = re.compile(r"(instruct|it|chat|hf)+$")

Line = tuple[str, str, list[str]]
"""Who answers, the method, and its cells."""


def chosen(tables: Iterable[str]) -> tuple[PublishedScore, ...]:
    """The rows of tables that are named as on a command line: ``v2`` is SAFE v2's main one.

    Raises ``UserError`` for a table that is not there.

    >>> list(dict.fromkeys(row.table for row in chosen(["v2", "v1:12"])))
    ['2', '12']
    """
    main: dict[str, str] = {paper: f"{paper}:{table}" for paper, table in MAIN.items()}
    known = dict.fromkeys(f"{row.paper}:{row.table}" for row in printed().scores)
    names = [one_of(text, [*main, *known], "--published") for text in tables]
    wanted = dict.fromkeys(main.get(name, name) for name in names)
    return tuple(row for name in wanted for row in printed().scores if f"{row.paper}:{row.table}" == name)


def spelled(generator: str) -> str:
    """A model's name as far as it tells models apart, however it is written.

    >>> spelled("openai:Qwen/Qwen3-8B") == spelled("Qwen 3 8B")
    True
    >>> spelled("vllm:google/gemma-3-12b-it@0123") == spelled("Gemma 3 12B")
    True
    """
    model = re.split(r"[@+]", generator)[0].rsplit("/", 1)[-1].rsplit(":", 1)[-1]
    return _TUNED.sub("", re.sub(r"[^a-z0-9]", "", model.casefold()))


def published_lines(published: Sequence[PublishedScore], benchmarks: Sequence[str]) -> dict[str, list[Line]]:
    """The rows by their generators' spelled names, the totals last."""
    found: dict[str, list[Line]] = {}
    for row in sorted(published, key=lambda row: row.generator == published_tables.EVERY):
        who = EVERY if row.generator == published_tables.EVERY else row.generator
        for name, cells in _cells(row, benchmarks):
            if any(cell != NOTHING for cell in cells):
                found.setdefault(spelled(who), []).append((who, name, cells))
    return found


def _cells(row: PublishedScore, benchmarks: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """A row, and what it gains as far as that is printed."""
    places = [*benchmarks, *([AVERAGE] if set(benchmarks) == set(BENCHMARKS) else [])]
    missing = [NOTHING] * (len(METRICS) * (len(benchmarks) + 1 - len(places)))
    title = METHODS[row.method].title if row.method in METHODS else _TITLES[row.method]
    name = ", ".join(filter(None, (title, row.variant)))
    of = f"(published: {PAPERS[row.paper]}, Table {row.table})"
    printed = [row.scores.get(place, {}).get(_PRINTED[m]) for place in places for m in METRICS]
    yield f"{name} {of}", [*map(_shown, printed), *missing]
    gains = [row.delta.get(p) if m == "accuracy" else None for p in places for m in METRICS]
    yield f"Δ {name} {of}", [NOTHING if g is None else f"{g:+.1f}" for g in gains] + missing


def _shown(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1f}"
