"""Build the tables of scores: the paper's main table (SAFE v1, Table 3) with margins, intervals and tests.

A *gain* is a system's score minus its baseline's; a *margin* is half the width of the 95% interval. Rows of the
papers' tables can be added (*published* rows). They are marked and never tested, as they have other questions, another
judge and other verifiers. A published row shows only the benchmarks that ours have, and its average only if they are
all the benchmarks of the paper.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from evaluators.comparison.scores import AVERAGE, Comparison, Difference, Row, bounds
from evaluators.comparison.significance import Estimate
from evaluators.comparison.systems import EVERY, System, name_options, name_systems
from evaluators.outcomes import METRIC_NAMES, METRICS, Metric
from safe_stepwise.errors import check_choice
from safe_stepwise.methods import METHODS
from safe_stepwise.store import published_tables
from safe_stepwise.store.published_tables import BENCHMARKS, MAIN, PAPERS, PublishedScore
from safe_stepwise.store.published_tables import published as printed
from safe_stepwise.store.tables import NOTHING, Table, decimal, format_cell, p_value, percent


def score_table(comparison: Comparison, published: Sequence[PublishedScore] = ()) -> Table:
    """Return EM, F1, accuracy and gains of each system by answerer, totals last; published rows follow our own."""
    table: Table = [(comparison.answering, "method", *_score_header(comparison))]
    beside = published_lines(published, comparison.benchmarks)
    for answering, rows in groupby(comparison.rows, lambda row: row.system.answering):
        table += [line for row in rows for line in _score_lines(comparison, row)]
        table += [(answering, name, *cells) for _, name, cells in beside.pop(model_key(answering), [])]
    table += [line for row in comparison.totals for line in _score_lines(comparison, row)]
    return table + [(answerer, name, *cells) for lines in beside.values() for answerer, name, cells in lines]


def _score_lines(comparison: Comparison, row: Row) -> Iterable[list[object]]:
    system, name = row.system, comparison.names[row.system]
    yield [system.answering, name, *(_with_margin(e) for e in _scores(comparison, row))]
    if comparison.references_of(system):
        gains = [_with_margin(e, "+") for e in _gains(comparison, row)]
        yield [system.answering, f"Δ {name} {baseline_text(comparison, system)}", *gains]


def interval_table(comparison: Comparison) -> Table:
    """Return the 95% confidence intervals of `score_table`."""
    names = comparison.names
    rows = (
        (row.system.answering, names[row.system], *map(_interval, _scores(comparison, row)))
        for row in (*comparison.rows, *comparison.totals)
    )
    return [(comparison.answering, "method", *_score_header(comparison)), *rows]


def difference_table(comparison: Comparison) -> Table:
    """Return a line per pair of systems and benchmark: difference, 95% interval, p, Holm's p for each measure."""
    names = comparison.names
    tested = {(d.first, d.second, d.benchmark, d.metric): d for d in comparison.differences}
    places = dict.fromkeys((d.first, d.second, d.benchmark) for d in comparison.differences)
    header = [comparison.answering, "difference", "benchmark", "pairs", "unpaired"]
    for metric in METRICS:
        name = METRIC_NAMES[metric]
        header += [f"Δ {name}", "95% CI", f"p ({name})", "p, Holm"]
    table: Table = [header]
    for later, earlier, benchmark in places:
        differences = [tested.get((later, earlier, benchmark, metric)) for metric in METRICS]
        example = next(d for d in differences if d)  # EM's, over all questions
        label = f"{names[later]} − {names[earlier]}"
        tests = [cell for d in differences for cell in (_test_cells(d) if d else [NOTHING] * 4)]
        place = benchmark or AVERAGE
        table.append([later.answering, label, place, example.pairs, example.unpaired, *tests])
    return table


def score_csv(comparison: Comparison, published: Sequence[PublishedScore] = ()) -> Table:
    """Return `score_table` as rows of a CSV file: scores in percent, bounds of intervals, counts of questions."""
    columns = [f"{place}_{metric}" for place in [*comparison.benchmarks, AVERAGE] for metric in METRICS]
    bounds = [f"{column}_{bound}" for column in columns for bound in ("low", "high")]
    count_names = ("questions", "scored", "unscored", "failed")
    counts = [f"{name}_{count}" for name in comparison.benchmarks for count in count_names]
    table: Table = [(*comparison.columns, "row", *columns, *bounds, *counts)]
    for row, prefix in [*((r, "") for r in comparison.rows), *((r, "total ") for r in comparison.totals)]:
        estimates = _scores(comparison, row)
        cells = [row.cells.get(name) for name in comparison.benchmarks]
        numbers = [getattr(cell, count) if cell else 0 for cell in cells for count in count_names]
        table.append([*comparison.identify(row), f"{prefix}score", *_values(estimates), *numbers])
        if comparison.references_of(row.system):
            gains = _gains(comparison, row)
            name = f"{prefix}delta {baseline_text(comparison, row.system)}"
            table.append([*comparison.identify(row), name, *_values(gains), *[""] * len(counts)])
    for lines in published_lines(published, comparison.benchmarks).values():
        for answerer, name, texts in lines:
            subject = [answerer, *[""] * (len(comparison.columns) - 2), "false"]
            values = ["" if cell == NOTHING else cell for cell in texts]
            table.append([*subject, name, *values, *[""] * len([*bounds, *counts])])
    return table


def difference_csv(comparison: Comparison) -> Table:
    """Return all differences between systems as rows of a CSV file, in percentage points."""
    # The columns in which two compared systems can differ.
    options = name_options(row.system for row in comparison.rows)
    varying_options = {"method", *options, *(r for row in comparison.rows for r in [*row.players][1:])}
    columns = comparison.columns
    varying_columns = [n for n, name in enumerate(columns) if name in varying_options]
    table: Table = [
        (*columns, *(f"than_{columns[n]}" for n in varying_columns), "benchmark", "metric", "pairs",
         "unpaired", "delta", "low", "high", "test", "p", "p_holm")
    ]  # fmt: skip
    cells = {row.system: comparison.identify(row) for row in (*comparison.rows, *comparison.totals)}
    for d in comparison.differences:
        row_cells = [*cells[d.first][:-1], "true" if d.simulated else "false"]
        opponent = [cells[d.second][n] for n in varying_columns]
        place = [d.benchmark or AVERAGE, d.metric, d.pairs, d.unpaired]
        table.append([*row_cells, *opponent, *place, *_values([d.estimate]), d.test, d.p, d.p_holm])
    return table


def baseline_text(comparison: Comparison, system: System) -> str:
    """Say over which baseline the gains are (``over CoT``), with its options if they differ from the system's."""
    by_baseline: dict[str, list[str]] = {}
    for metric, baseline in comparison.references_of(system).items():
        if baseline:
            by_baseline.setdefault(_baseline_name(baseline, system), []).append(METRIC_NAMES[metric])
    if not by_baseline:
        return "over no baseline"
    if len(by_baseline) == 1:
        return f"over {next(iter(by_baseline))}"
    return "over " + ", ".join(f"{b} ({', '.join(m)})" for b, m in by_baseline.items())


def _baseline_name(baseline: System, system: System) -> str:
    if baseline.method == system.method:
        return name_systems([baseline, system])[baseline]
    return ", ".join(filter(None, (baseline.title, baseline.describe(name_options([baseline, system])))))


def _score_header(comparison: Comparison) -> list[str]:
    return [f"{place} {METRIC_NAMES[metric]}" for place in [*comparison.benchmarks, AVERAGE] for metric in METRICS]


def _scores(comparison: Comparison, row: Row) -> list[Estimate | None]:
    cells = [row.cells.get(name) for name in comparison.benchmarks]
    places = [*(cell.estimates if cell else {} for cell in cells), row.average]
    return [estimates.get(metric) for estimates in places for metric in METRICS]


def _gains(comparison: Comparison, row: Row) -> list[Estimate | None]:
    better = {metric: comparison.references_of(row.system).get(metric) for metric in METRICS}
    differences = (
        comparison.difference(row.system, baseline, place, metric) if baseline else None
        for place in (*comparison.benchmarks, None)
        for metric, baseline in better.items()
    )
    return [gain.estimate if gain else None for gain in differences]


def _with_margin(estimate: Estimate | None, sign: str = "") -> object:
    return format_cell(estimate, lambda e: f"{percent(e.value, sign)} ±{percent((e.high - e.low) / 2)}")


def _interval(estimate: Estimate | None, sign: str = "") -> object:
    return format_cell(estimate, lambda e: f"{percent(e.low, sign)} to {percent(e.high, sign)}")


def _test_cells(d: Difference) -> list[object]:
    return [percent(d.estimate.value, "+"), _interval(d.estimate, "+"), p_value(d.p), p_value(d.p_holm)]


def _values(estimates: Sequence[Estimate | None]) -> list[str]:
    triples = [bounds(estimate) for estimate in estimates]
    return [value for value, *_ in triples] + [b for _, *limits in triples for b in limits]


_PRINTED: Mapping[Metric, str] = {"exact_match": "em", "f1": "f1", "accuracy": "acc"}
_TUNED = re.compile(r"(instruct|it|chat|hf)+$")

Line = tuple[str, str, list[object]]
"""The answerer, the method, and the cells of a published row."""


def choose_tables(tables: Iterable[str]) -> tuple[PublishedScore, ...]:
    """Return the rows of the papers' tables with these names (``v2``, ``v1:12``); raise ``UserError`` for another.

    >>> list(dict.fromkeys(row.table for row in choose_tables(["v2", "v1:12"])))
    ['2', '12']
    """
    main: dict[str, str] = {paper: f"{paper}:{table}" for paper, table in MAIN.items()}
    every_table = dict.fromkeys(f"{row.paper}:{row.table}" for row in printed().scores)
    names = [check_choice(text, [*main, *every_table], "--published") for text in tables]
    table_names = dict.fromkeys(main.get(name, name) for name in names)
    return tuple(row for name in table_names for row in printed().scores if f"{row.paper}:{row.table}" == name)


def model_key(generator: str) -> str:
    """Reduce a model's name to a key that is the same for an engine's spec and for a paper's spelling.

    >>> model_key("openai:Qwen/Qwen3-8B") == model_key("Qwen 3 8B")
    True
    >>> model_key("vllm:google/gemma-3-12b-it@0123") == model_key("Gemma 3 12B")
    True
    """
    model = re.split(r"[@+]", generator)[0].rsplit("/", 1)[-1].rsplit(":", 1)[-1]
    return _TUNED.sub("", re.sub(r"[^a-z0-9]", "", model.casefold()))


def published_lines(published: Sequence[PublishedScore], benchmarks: Sequence[str]) -> dict[str, list[Line]]:
    """Group published rows of our ``benchmarks`` by their generator's key (`model_key`), totals last."""
    lines: dict[str, list[Line]] = {}
    for row in sorted(published, key=lambda row: row.generator == published_tables.EVERY):
        answerer = EVERY if row.generator == published_tables.EVERY else row.generator
        for name, cells in _cells(row, benchmarks):
            if any(cell != NOTHING for cell in cells):
                lines.setdefault(model_key(answerer), []).append((answerer, name, cells))
    return lines


def _cells(row: PublishedScore, benchmarks: Sequence[str]) -> Iterator[tuple[str, list[object]]]:
    places = [*benchmarks, *([AVERAGE] if set(benchmarks) == set(BENCHMARKS) else [])]
    missing: list[object] = [NOTHING] * (len(METRICS) * (len(benchmarks) + 1 - len(places)))
    title = METHODS[row.method].title
    name = ", ".join(filter(None, (title, row.variant)))
    source = f"(published: {PAPERS[row.paper]}, Table {row.table})"
    printed = [row.scores.get(place, {}).get(_PRINTED[m]) for place in places for m in METRICS]
    yield f"{name} {source}", [*(format_cell(score, decimal(1)) for score in printed), *missing]
    gains = [row.delta.get(p) if m == "accuracy" else None for p in places for m in METRICS]
    yield f"Δ {name} {source}", [*(format_cell(gain, decimal(1, "+")) for gain in gains), *missing]
