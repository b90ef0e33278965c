"""Write an evaluation's report into a folder: tables and figures, and all numbers as one object.

| file | contents |
| --- | --- |
| ``comparison.md``, ``comparison.csv`` | scores in the layout of SAFE v1, Table 3, with margins |
| ``comparison.png`` | these scores as a figure |
| ``tests.csv`` | every paired difference and its tests |
| ``cost.md``, ``cost.csv`` | calls and tokens by role (Table 8), and how questions ended |
| ``failures.md``, ``failures.csv`` | errors that verifiers found: by type, category, step (Figures 3, 4) |
| the same, ``uptake.csv`` | what became of steps that were written again after a rejection, by its error type |
| ``sweep.csv`` | scores and cost by the values of an option, such as K or N (Figures 2, 10) |
| ``methods.md``, ``methods.csv`` | scores, calls and gains per token by method and benchmark |
| the same | form, supporting facts, failures of prompting methods, votes at equal cost (SG-FSM, Tables 2, 3) |
| ``machines.svg``, ``transitions.csv`` | the edges that machines took (SG-FSM, Figure 1) |
| ``report.html`` | all of these pages in one (`evaluators.report_page`, written last) |

A *sweep* runs a method with several values of an option. On request, rows of the papers' tables appear beside ours,
marked as published and never tested.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluators.comparison import comparing, costs, figures, methods, score_tables, scores
from evaluators.comparison.systems import EVERY, common_options, has_sweep, values_by_name
from evaluators.outcomes import Outcome
from safe_stepwise.store.files import write_files
from safe_stepwise.store.names import COMPARISON, METHODS_PAGE, REPORT_PAGE
from safe_stepwise.store.published_tables import PublishedScore
from safe_stepwise.store.tables import csv_bytes, escaped, fill

TEMPLATES = Path(__file__).parent / "templates"
FILES = (
    COMPARISON, "comparison.csv", "comparison.png", "tests.csv", "cost.md", "cost.csv", "failures.md", "failures.csv",
    "uptake.csv", "sweep.csv", METHODS_PAGE, "methods.csv", "machines.svg", "transitions.csv", REPORT_PAGE,
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
    papers = tuple(dict.fromkeys(row.paper for row in published))
    differences, cost_sheet = score_tables.difference_sheet(comparison), costs.cost_sheet(comparison)
    text = _comparison_text(comparison, published, differences.markdown)
    printed, endings = costs.published_table(papers), costs.ending_sheet(comparison)
    cost = fill(TEMPLATES, "cost.md.jinja", comparison=comparison, costs=cost_sheet, printed=printed, endings=endings)
    files = {
        COMPARISON: text.encode(),
        "comparison.png": figures.draw_scores(comparison, _representatives(comparison.rows)),
        "comparison.csv": csv_bytes(score_tables.score_csv(comparison, published)),
        "tests.csv": differences.csv,
        "cost.md": cost.encode(),
        "cost.csv": cost_sheet.csv,
        **_failure_files(comparison, papers),
        **_method_files(comparison, outcomes, published),
    }
    if has_sweep([row.system for row in comparison.rows]):
        files["sweep.csv"] = csv_bytes(costs.sweep_csv(comparison))
    return Report(text, scores.render_results(comparison), files)


def _comparison_text(comparison: scores.Comparison, published: Sequence[PublishedScore], differences: str) -> str:
    names, totals = comparison.names, {row.system for row in comparison.totals}
    left_out = [row.system for row in comparison.rows if row.system.answered_by(EVERY) not in totals]
    return fill(
        TEMPLATES,
        "comparison.md.jinja",
        comparison=comparison,
        in_common=_common_text(comparison),
        scores=score_tables.score_table(comparison, published),
        answering=len({row.system.answering for row in comparison.rows}),
        left_out="; ".join(f"{system.answering}, {names[system]}" for system in left_out),
        published=published,
        published_lines=score_tables.published_lines(published, comparison.benchmarks),
        shortfalls=_shortfalls(comparison),
        differences=differences,
    )


def _common_text(comparison: scores.Comparison) -> str:
    systems = [row.system for row in comparison.rows]
    players = values_by_name((f"{s.title}'s {role}", name) for s in systems for role, name in s.players[1:])
    sentences = [escaped(f"{player}: {names[0]}.") for player, names in players.items() if len(names) == 1]
    options = common_options(systems, ("on_exhausted", "feedback"))  # even defaults, as reports are compared by them
    return "".join(f"{sentence} " for sentence in [*sentences, *([f"{options}."] if options else [])])


def _shortfalls(comparison: scores.Comparison) -> list[str]:
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


def _failure_files(comparison: scores.Comparison, papers: Iterable[str]) -> dict[str, bytes]:
    rows = costs.count_failures(comparison)
    if not any(row.types for row in rows):
        return {}
    tables = {"failures": costs.failure_table(rows, papers), "positions": costs.position_table(rows)}
    uptake = costs.uptake_sheet(comparison)
    return {
        "failures.md": fill(TEMPLATES, "failures.md.jinja", comparison=comparison, uptake=uptake, **tables).encode(),
        "failures.csv": csv_bytes(costs.failure_csv(rows)),
        **({"uptake.csv": uptake.csv} if uptake.rows else {}),
    }


def _representatives(rows: Sequence[scores.Row]) -> list[scores.Row]:
    """Return one row for each method and its players: the row with default options, else the last."""
    by_method: dict[object, scores.Row] = {}
    for row in rows:
        key = row.system.method, row.system.players
        if key not in by_method or by_method[key].system.departures:
            by_method[key] = row
    return [row for row in rows if row in by_method.values()]


def _method_files(
    comparison: scores.Comparison, outcomes: Sequence[Outcome], published: Sequence[PublishedScore]
) -> dict[str, bytes]:
    rows = methods.measure_methods(outcomes, [row.system for row in comparison.rows])
    sheet, machines = methods.method_sheet(comparison, rows), costs.count_moves(comparison)
    transitions = costs.transition_sheet(comparison, machines)
    text = fill(
        TEMPLATES,
        "methods.md.jinja",
        comparison=comparison,
        in_common=_common_text(comparison),
        methods=sheet,
        printed=score_tables.published_support_table(published, comparison.benchmarks),
        **methods.detail_sheets(comparison, rows),
        votes=methods.equal_cost_sheet(comparison, methods.measure_costs(outcomes)),
        transitions=transitions,
    )
    files = {METHODS_PAGE: text.encode("utf-8", "backslashreplace"), "methods.csv": sheet.csv}
    if machines:
        files |= {"machines.svg": figures.draw_machines(machines), "transitions.csv": transitions.csv}
    return files
