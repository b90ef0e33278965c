"""Write an evaluation's report into a folder: tables and figures, and all numbers as one object.

| file | contents |
| --- | --- |
| ``comparison.md``, ``comparison.csv`` | scores in the layout of SAFE v1, Table 3, with margins |
| ``comparison.png`` | these scores as a figure |
| ``tests.csv`` | every paired difference and its tests |
| ``cost.md``, ``cost.csv`` | calls and tokens by role (Table 8), and how questions ended |
| ``error_types.*``, ``error_positions.*`` | the errors that a verifier found, by type and by step (Figures 3, 4) |
| ``failures.md``, ``.csv``, ``.png`` | these errors by category, pooled over generators (Figure 3) |
| ``sweep.csv``, ``sweep.png`` | scores and cost by the values of an option, such as K or N (Figures 2, 10) |
| ``methods.md``, ``methods.csv`` | scores, calls and gains per token by method and benchmark |
| the same | form, supporting facts, failures of prompting methods, votes at equal cost (SG-FSM, Tables 2, 3) |
| ``machines.svg``, ``transitions.csv`` | the edges that machines took (SG-FSM, Figure 1) |

A *sweep* runs a method with several values of an option. Its table of scores is split by benchmark, as it is too wide.
On request, rows of the papers' tables appear beside ours, marked as published and never tested.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluators.comparison import comparing, costs, figures, methods, score_tables
from evaluators.comparison.scores import Comparison, Row, render_results
from evaluators.comparison.systems import EVERY, common_options, find_swept_options, values_by_name
from evaluators.outcomes import METRICS, Metric, Outcome
from safe_stepwise.store.files import write_files
from safe_stepwise.store.names import COMPARISON, METHODS_PAGE
from safe_stepwise.store.published_tables import PublishedScore
from safe_stepwise.store.tables import Table, csv_bytes, escaped, fill, split_columns

ABLATED = ("on_exhausted", "feedback")
"""Options whose values every report names, even if they are the defaults, as reports are compared by them."""
TEMPLATES = Path(__file__).parent / "templates"
_MAX_COLUMNS = 9
"""The most columns of a sweep's table before it is split."""
FILES = (
    COMPARISON, "comparison.csv", "comparison.png", "tests.csv", "cost.md", "cost.csv",
    "error_types.csv", "error_types.png", "error_positions.csv", "error_positions.png",
    "failures.md", "failures.csv", "failures.png", "sweep.csv", "sweep.png", METHODS_PAGE,
    "methods.csv", "machines.svg", "transitions.csv",
)  # fmt: skip
"""All files that a report can have."""


@dataclass(frozen=True, slots=True)
class Report:
    """The report of an evaluation."""

    text: str
    """``comparison.md``."""
    results: dict[str, Any]
    """All numbers, for ``results.json``; shares are from 0 to 1."""
    files: dict[str, bytes]
    """The contents of the report's files, by name."""


def write(
    outcomes: Iterable[Outcome], folder: Path, seed: int = 0, published: Sequence[PublishedScore] = ()
) -> Report:
    """Write the report on ``outcomes`` into ``folder`` and return it; the same outcomes give the same bytes.

    Removes files of an earlier report that this one lacks. ``seed`` is the seed of the intervals and tests;
    ``published`` are the papers' rows to show. Raises ``UserError`` for outcomes that cannot be compared or a folder
    that cannot be written.
    """
    report = render_report(outcomes, seed, published)
    write_files(folder, FILES, report.files)
    return report


def render_report(outcomes: Iterable[Outcome], seed: int = 0, published: Sequence[PublishedScore] = ()) -> Report:
    """Render the report on ``outcomes``, without writing it."""
    outcomes = list(outcomes)
    comparison = comparing.compare(outcomes, seed)
    text = _comparison_text(comparison, published)
    papers = tuple(dict.fromkeys(row.paper for row in published))
    cost_sheet = costs.cost_sheet(comparison)
    representatives = _representatives(comparison.rows)
    judged = any(cell.scored for row in comparison.rows for cell in row.cells.values())
    metric: Metric = "accuracy" if judged else "exact_match"
    files = {
        COMPARISON: text.encode(),
        "comparison.png": figures.draw_scores(comparison, representatives, metric),
        "comparison.csv": csv_bytes(score_tables.score_csv(comparison, published)),
        "tests.csv": csv_bytes(score_tables.difference_csv(comparison)),
        "cost.md": fill(
            TEMPLATES,
            "cost.md.jinja",
            comparison=comparison,
            costs=_split(comparison, cost_sheet.table, 3, (6, len(cost_sheet.table[0]) - 9)),
            printed=costs.published_table(papers),
            endings=costs.ending_sheet(comparison),
        ).encode(),
        "cost.csv": cost_sheet.csv,
        **_error_files(comparison),
        **_failure_files(comparison, papers),
        **_sweep_files(comparison, metric),
        **_method_files(comparison, outcomes),
    }
    return Report(text, render_results(comparison), files)


def _comparison_text(comparison: Comparison, published: Sequence[PublishedScore]) -> str:
    names, totals = comparison.names, {row.system for row in comparison.totals}
    left_out = [row.system for row in comparison.rows if row.system.answered_by(EVERY) not in totals]
    by_place = [len(METRICS)] * (len(comparison.benchmarks) + 1)
    return fill(
        TEMPLATES,
        "comparison.md.jinja",
        comparison=comparison,
        in_common=_common_text(comparison),
        scores=_split(comparison, score_tables.score_table(comparison, published), 2, by_place),
        answering=len({row.system.answering for row in comparison.rows}),
        left_out="; ".join(f"{system.answering}, {names[system]}" for system in left_out),
        published=published,
        published_lines=score_tables.published_lines(published, comparison.benchmarks),
        shortfalls=_shortfalls(comparison),
        intervals=_split(comparison, score_tables.interval_table(comparison), 2, by_place),
        differences=_split(comparison, score_tables.difference_table(comparison), 5, [4] * len(METRICS)),
    )


def _common_text(comparison: Comparison) -> str:
    systems = [row.system for row in comparison.rows]
    players = values_by_name((f"{s.title}'s {role}", name) for s in systems for role, name in s.players[1:])
    sentences = [escaped(f"{player}: {names[0]}.") for player, names in players.items() if len(names) == 1]
    options = common_options(systems, ABLATED)
    return "".join(f"{sentence} " for sentence in [*sentences, *([f"{options}."] if options else [])])


def _shortfalls(comparison: Comparison) -> list[str]:
    """List for each system, in a line, the questions that its scores leave out or count as wrong."""
    names = comparison.names
    lines = []
    for row in comparison.rows:
        cells = row.cells.values()
        judged = any(cell.scored for cell in cells)
        counts = {
            "unscored by the judge (in no Acc)": sum(cell.unscored for cell in cells),
            "never judged (in no Acc)": sum(cell.unjudged for cell in cells) if judged else 0,
            "failed for good (wrong in EM and F1)": sum(cell.failed for cell in cells),
        }
        reasons = [f"{count:,} {reason}" for reason, count in counts.items() if count]
        if lacking := [name for name in comparison.benchmarks if name not in row.cells]:
            reasons.append(f"none of {', '.join(lacking)}, so it has no average")
        if reasons:
            total = sum(cell.questions for cell in cells)
            name = f"{row.system.answering}, {names[row.system]}"
            lines.append(f"{name}: of {total:,} questions {'; '.join(reasons)}")
    return lines


def _split(comparison: Comparison, table: Table, fixed: int, widths: Sequence[int]) -> list[Table]:
    """Split a sweep's wide table into tables of ``widths`` columns; leave any other whole."""
    is_wide = len(table[0]) > _MAX_COLUMNS and bool(find_swept_options([row.system for row in comparison.rows]))
    return split_columns(table, fixed, widths) if is_wide else [table]


def _error_files(comparison: Comparison) -> dict[str, bytes]:
    verified = [row for row in comparison.rows if row.verified]
    if not verified:
        return {}
    names, representatives = comparison.names, _representatives(verified)
    return {
        "error_types.csv": csv_bytes(costs.error_type_csv(comparison, verified)),
        "error_types.png": figures.draw_error_types(representatives, names),
        "error_positions.csv": csv_bytes(costs.error_position_csv(comparison, verified)),
        "error_positions.png": figures.draw_error_positions(representatives, names),
    }


def _failure_files(comparison: Comparison, papers: Iterable[str]) -> dict[str, bytes]:
    rows = costs.count_failures(comparison)
    if not any(row.types for row in rows):
        return {}
    table = costs.failure_table(rows, papers)
    return {
        "failures.md": fill(TEMPLATES, "failures.md.jinja", comparison=comparison, failures=table).encode(),
        "failures.csv": csv_bytes(costs.failure_csv(rows)),
        "failures.png": figures.draw_failures(rows),
    }


def _representatives(rows: Sequence[Row]) -> list[Row]:
    """Return one row for each method and its players: the row with default options, else the last."""
    by_method: dict[object, Row] = {}
    for row in rows:
        key = row.system.method, row.system.players
        if key not in by_method or by_method[key].system.departures:
            by_method[key] = row
    return [row for row in rows if row in by_method.values()]


def _sweep_files(comparison: Comparison, metric: Metric) -> dict[str, bytes]:
    rows = comparison.rows
    if not find_swept_options([row.system for row in rows]):
        return {}
    files = {"sweep.csv": csv_bytes(costs.sweep_csv(comparison))}
    averaged = [row for row in rows if row.average[metric]]
    if find_swept_options([row.system for row in averaged]):
        files["sweep.png"] = figures.draw_sweep(averaged, metric)
    return files


def _method_files(comparison: Comparison, outcomes: Sequence[Outcome]) -> dict[str, bytes]:
    rows = methods.measure_methods(outcomes, [row.system for row in comparison.rows])
    sheet, counts = methods.method_sheet(comparison, rows), costs.count_moves(comparison)
    text = fill(
        TEMPLATES,
        "methods.md.jinja",
        comparison=comparison,
        in_common=_common_text(comparison),
        methods=sheet,
        form=methods.form_sheet(comparison, rows),
        support=methods.support_sheet(comparison, rows),
        failures=methods.failure_sheet(comparison, rows),
        votes=methods.equal_cost_sheet(comparison, methods.measure_costs(outcomes)),
        transitions=costs.transition_sheet(comparison, counts, only_taken=True),
    )
    files = {METHODS_PAGE: text.encode("utf-8", "backslashreplace"), "methods.csv": sheet.csv}
    if counts:
        files["machines.svg"] = costs.draw_machines(counts)
        files["transitions.csv"] = costs.transition_sheet(comparison, counts).csv
    return files
