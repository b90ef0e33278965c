"""Build the tables of scores: the paper's main table (SAFE v1, Table 3) with margins, intervals and tests.

A *gain* is a system's score minus its baseline's; a *margin* is half the width of the 95% interval. Rows of the
papers' tables can be added (*published* rows). They are marked and never tested, as they have other questions, another
judge and other verifiers. A published row shows only the benchmarks that ours have, and its average only if they are
all the benchmarks of the paper.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from evaluators.comparison import significance, systems
from evaluators.comparison.scores import AVERAGE, CSV_ONLY, Comparison, Difference, Row, bounds
from evaluators.outcomes import METRIC_NAMES, METRICS, Metric
from safe_stepwise.errors import check_choice
from safe_stepwise.methods import METHODS
from safe_stepwise.store import published_tables
from safe_stepwise.store.published_tables import published as printed
from safe_stepwise.store.tables import NOTHING, Column, Sheet, Table, decimal, format_cell, p_value, percent, signed

_PRINTED: Mapping[Metric, str] = {"exact_match": "em", "f1": "f1", "accuracy": "acc"}
Line = tuple[str, str, list[object]]
"""The answerer, the method, and the cells of a published row."""
_SUPPORT_TITLES = {"format": "format, %", "sup_em": "facts EM", "sup_f1": "facts F1", "joint_em": "joint EM",
                   "joint_f1": "joint F1"}  # fmt: skip


def score_table(comparison: Comparison, published: Sequence[published_tables.PublishedScore] = ()) -> Table:
    """Return EM, F1, accuracy and gains of each system by answerer, then totals; published rows follow our own."""
    lines = [line for row in (*comparison.rows, *comparison.totals) for line in _score_lines(comparison, row)]
    beside = ((answerer, name, *cells) for answerer, name, cells in published_lines(published, comparison.benchmarks))
    titles = (f"{place} {METRIC_NAMES[m]}" for place in [*comparison.benchmarks, AVERAGE] for m in METRICS)
    table = [(comparison.answering, "method", *titles), *lines, *beside]
    width = 2 + len(METRICS) * len(comparison.places)  # one benchmark has no average
    return [line[:width] for line in table]


def _score_lines(comparison: Comparison, row: Row) -> Iterable[list[object]]:
    system, name = row.system, comparison.names[row.system]
    yield [system.answering, name, *(_with_margin(e) for e in _scores(comparison, row))]
    if reference := comparison.reference_of(system):
        gains = [_with_margin(e, "+") for e in _gains(comparison, row, reference)]
        yield [system.answering, f"Δ {name} over {_name_reference(reference, system)}", *gains]


def score_csv(comparison: Comparison, published: Sequence[published_tables.PublishedScore] = ()) -> Table:
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
        if reference := comparison.reference_of(row.system):
            gains = _gains(comparison, row, reference)
            name = f"{prefix}delta over {_name_reference(reference, row.system)}"
            table.append([*comparison.identify(row), name, *_values(gains), *[""] * len(counts)])
    for answerer, name, texts in published_lines(published, comparison.benchmarks):
        subject = [answerer, *[""] * (len(comparison.columns) - 2), "false"]
        values = ["" if cell == NOTHING else cell for cell in texts]
        table.append([*subject, name, *values, *[""] * len([*bounds, *counts])])
    return table


def difference_sheet(comparison: Comparison) -> Sheet[Difference]:
    """Return a row for each difference of two systems on a benchmark in a measure, in percentage points."""
    names, identifying = comparison.names, comparison.columns
    cells = {row.system: comparison.identify(row) for row in (*comparison.rows, *comparison.totals)}
    # Two compared systems can differ in these.
    varying = {"method", *systems.name_options(row.system for row in comparison.rows)}
    varying.update(role for row in comparison.rows for role in [*row.players][1:])

    def cell_of(side: str, prefix: str, index: int) -> Column[Difference]:
        return Column(CSV_ONLY, lambda d: cells[getattr(d, side)][index], key=f"{prefix}{identifying[index]}")

    columns: list[Column[Difference]] = [
        Column(comparison.answering, lambda d: d.first.answering),
        Column("difference", lambda d: f"{names[d.first]} − {names[d.second]}"),
        *(cell_of("first", "", index) for index in range(len(identifying) - 1)),
        Column(CSV_ONLY, lambda d: d.simulated, key="simulated"),
        *(cell_of("second", "than_", index) for index, name in enumerate(identifying) if name in varying),
        Column("benchmark", lambda d: d.benchmark or AVERAGE, key="benchmark"),
        Column("measure", lambda d: METRIC_NAMES[d.metric]),
        Column(CSV_ONLY, lambda d: d.metric, key="metric"),
        *(Column(name, attrgetter(name), key=name) for name in ("pairs", "unpaired")),
        Column("Δ", lambda d: d.estimate.value, signed),
        Column("95% CI", lambda d: d.estimate, lambda e: f"{signed(e.low)} to {signed(e.high)}"),
        Column(CSV_ONLY, lambda d: d.estimate.value, percent, "delta"),
        Column(CSV_ONLY, lambda d: d.estimate.low, percent, "low"),
        Column(CSV_ONLY, lambda d: d.estimate.high, percent, "high"),
        Column(CSV_ONLY, lambda d: d.test, key="test"),
        Column("p", lambda d: d.p, p_value),
        Column("p, Holm", lambda d: d.p_holm, p_value),
        *(Column(CSV_ONLY, attrgetter(name), key=name) for name in ("p", "p_holm")),
    ]
    return Sheet(columns, [d for d in comparison.differences if d.benchmark in comparison.places])


def _name_reference(reference: systems.System, system: systems.System) -> str:
    """Name a reference, with its options if they differ from the system's."""
    if reference.method == system.method:
        return systems.name_systems([reference, system])[reference]
    return ", ".join(filter(None, (reference.title, reference.describe(systems.name_options([reference, system])))))


def _scores(comparison: Comparison, row: Row) -> list[significance.Estimate | None]:
    cells = [row.cells.get(name) for name in comparison.benchmarks]
    places = [*(cell.estimates if cell else {} for cell in cells), row.average]
    return [estimates.get(metric) for estimates in places for metric in METRICS]


def _gains(comparison: Comparison, row: Row, reference: systems.System) -> list[significance.Estimate | None]:
    places = [*comparison.benchmarks, None]
    gains = [comparison.difference(row.system, reference, place, metric) for place in places for metric in METRICS]
    return [gain.estimate if gain else None for gain in gains]


def _with_margin(estimate: significance.Estimate | None, sign: str = "") -> object:
    return format_cell(estimate, lambda e: f"{percent(e.value, sign)} ±{percent((e.high - e.low) / 2)}")


def _values(estimates: Sequence[significance.Estimate | None]) -> list[str]:
    triples = [bounds(estimate) for estimate in estimates]
    return [value for value, *_ in triples] + [b for _, *limits in triples for b in limits]


def choose_tables(tables: Iterable[str]) -> tuple[published_tables.PublishedScore, ...]:
    """Return the rows of the papers' tables with these names (``v2``, ``v1:12``); raise ``UserError`` for another."""
    main: dict[str, str] = {paper: f"{paper}:{table}" for paper, table in published_tables.MAIN.items()}
    every_table = dict.fromkeys(f"{row.paper}:{row.table}" for row in printed().scores)
    names = [check_choice(text, [*main, *every_table], "--published") for text in tables]
    table_names = dict.fromkeys(main.get(name, name) for name in names)
    return tuple(row for name in table_names for row in printed().scores if f"{row.paper}:{row.table}" == name)


def published_lines(published: Sequence[published_tables.PublishedScore], benchmarks: Sequence[str]) -> list[Line]:
    """Return the published rows that have a score on our ``benchmarks``, totals last."""
    return [
        (systems.EVERY if row.generator == published_tables.EVERY else row.generator, name, cells)
        for row in sorted(published, key=lambda row: row.generator == published_tables.EVERY)
        for name, cells in _cells(row, benchmarks)
        if any(cell != NOTHING for cell in cells)
    ]


def published_support_table(published: Sequence[published_tables.PublishedScore], benchmarks: Sequence[str]) -> Table:
    """Return the printed form, facts and joint scores on ``benchmarks`` (SG-FSM, Table 3), or only the header."""
    table: Table = [("published", "method", "benchmark", *_SUPPORT_TITLES.values())]
    for row, name in ((row, name) for row in published for name in benchmarks if "format" in row.scores.get(name, {})):
        cells = (format_cell(row.scores[name].get(metric), decimal(1)) for metric in _SUPPORT_TITLES)
        table.append([f"{row.generator} (SG-FSM, Table {row.table})", METHODS[row.method].title, name, *cells])
    return table


def _cells(row: published_tables.PublishedScore, benchmarks: Sequence[str]) -> Iterator[tuple[str, list[object]]]:
    places = [*benchmarks, *([AVERAGE] if set(benchmarks) == set(published_tables.BENCHMARKS) else [])]
    missing: list[object] = [NOTHING] * (len(METRICS) * (len(benchmarks) + 1 - len(places)))
    title = METHODS[row.method].title
    name = ", ".join(filter(None, (title, row.variant)))
    source = f"(published: {published_tables.PAPERS[row.paper]}, Table {row.table})"
    printed = [row.scores.get(place, {}).get(_PRINTED[m]) for place in places for m in METRICS]
    yield f"{name} {source}", [*(format_cell(score, decimal(1)) for score in printed), *missing]
    gains = [row.delta.get(p) if m == "accuracy" else None for p in places for m in METRICS]
    yield f"Δ {name} {source}", [*(format_cell(gain, decimal(1, "+")) for gain in gains), *missing]
