"""A run's report: tables and figures in a folder, and the numbers behind them as one object.

| file | holds |
| --- | --- |
| ``comparison.md``, ``comparison.csv`` | scores in the layout of SAFE v1, Table 3, with margins |
| ``comparison.png`` | the same drawn |
| ``tests.csv`` | every paired difference and its tests |
| ``cost.md``, ``cost.csv`` | calls and tokens by role (Table 8), and how questions ended |
| ``error_types.*``, ``error_positions.*`` | where a verifier found errors (Figures 3, 4) |
| ``failures.md``, ``.csv``, ``.png`` | the same by category, pooled over who answers (Figure 3) |
| ``sweep.csv``, ``sweep.png`` | scores and cost by option, as of several K or N (Figures 2, 10) |
| ``methods.md``, ``methods.csv`` | method × benchmark: scores, calls, what tokens bring in |
| the same | form, facts, failures of prompting methods, votes at equal cost (SG-FSM, Tables 2, 3) |
| ``machines.svg``, ``transitions.csv`` | the edges that machines took (SG-FSM, Figure 1) |

Of a sweep each table of scores is one table a benchmark: with names that long it is too wide.
On request the papers' own rows stand beside ours, marked as published and never tested.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluators.comparison import (
    cost_tables,
    equal_cost,
    failures,
    machines,
    pages,
    plots,
    prompting_tables,
    score_plots,
    score_tables,
)
from evaluators.comparison.comparing import compare
from evaluators.comparison.numbers import results
from evaluators.comparison.prompting_tables import EQUAL_COST_TEXT, FAILURE_TEXT, FORM_TEXT, METHODS_TEXT, SUPPORT_TEXT
from evaluators.comparison.scores import METRICS, Comparison, Metric, Row
from evaluators.comparison.systems import swept
from evaluators.outcomes import Outcome
from safe_stepwise.store.files import write_files
from safe_stepwise.store.names import COMPARISON, METHODS_PAGE
from safe_stepwise.store.published_tables import PublishedScore
from safe_stepwise.store.tables import Table, csv_bytes, mark, markdown, parted

SCORES_FIGURE = "comparison.png"
_WIDEST = 9
"""Columns of a sweep's table that a page holds."""
FILES = (
    COMPARISON, "comparison.csv", SCORES_FIGURE, "tests.csv", "cost.md", "cost.csv",
    "error_types.csv", "error_types.png", "error_positions.csv", "error_positions.png",
    "failures.md", "failures.csv", "failures.png", "sweep.csv", "sweep.png", METHODS_PAGE,
    "methods.csv", "machines.svg", "transitions.csv",
)  # fmt: skip
"""All that a report may consist of."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a run came to."""

    text: str
    """``comparison.md``."""
    results: dict[str, Any]
    """All numbers, for ``results.json``; shares are 0-1."""
    files: dict[str, bytes]
    """The report's files by name."""


def write(
    outcomes: Iterable[Outcome], folder: Path, seed: int = 0, published: Sequence[PublishedScore] = ()
) -> Report:
    """Write the report on ``outcomes`` into ``folder`` and return it; same outcomes, same bytes.

    Files of an earlier report that this one has not are removed. ``seed`` is that of the intervals
    and tests; ``published`` rows stand beside ours. Raises ``UserError`` for outcomes that cannot
    be compared or a folder that cannot be written.
    """
    made = report(outcomes, seed, published)
    write_files(folder, FILES, made.files)
    return made


def report(outcomes: Iterable[Outcome], seed: int = 0, published: Sequence[PublishedScore] = ()) -> Report:
    """The report on ``outcomes``, not yet written."""
    outcomes = list(outcomes)
    comparison = compare(outcomes, seed)
    text = _comparison_text(comparison, published)
    papers = tuple(dict.fromkeys(row.paper for row in published))
    shown, metric = _drawn(comparison.rows), _told(comparison)
    files = {
        COMPARISON: text.encode(),
        SCORES_FIGURE: score_plots.scores_figure(comparison, shown, metric),
        "comparison.csv": csv_bytes(score_tables.score_csv(comparison, published)),
        "tests.csv": csv_bytes(score_tables.difference_csv(comparison)),
        "cost.md": _cost_text(comparison, papers).encode(),
        "cost.csv": csv_bytes(cost_tables.cost_csv(comparison)),
        **_error_files(comparison),
        **_failure_files(comparison, papers),
        **_sweep_files(comparison),
        **_method_files(comparison, outcomes),
    }
    return Report(text, results(comparison), files)


def _comparison_text(comparison: Comparison, published: Sequence[PublishedScore]) -> str:
    marked = mark(comparison.simulated)
    return pages.page(
        "Comparison",
        comparison,
        pages.about(comparison),
        f"![Scores and their intervals]({SCORES_FIGURE})",
        *_by_place(comparison, score_tables.score_table(comparison, published)),
        pages.MARGINS,
        *pages.totals(comparison),
        *pages.about_published(comparison, published),
        *pages.counts(comparison),
        f"## 95% confidence intervals{marked}",
        *_by_place(comparison, score_tables.interval_table(comparison)),
        f"## Paired tests{marked}",
        *_in_parts(comparison, score_tables.difference_table(comparison), 5, [4] * len(METRICS)),
        pages.tests_text(comparison),
    )


def _by_place(comparison: Comparison, table: Table) -> Iterable[str]:
    """A table of scores; of a sweep one a benchmark, and one of averages."""
    return _in_parts(comparison, table, 2, [len(METRICS)] * (len(comparison.benchmarks) + 1))


def _in_parts(comparison: Comparison, table: Table, fixed: int, widths: Sequence[int]) -> Iterable[str]:
    """A table as Markdown, in parts of ``widths`` columns where names are long and many."""
    is_wide = len(table[0]) > _WIDEST and bool(swept([row.system for row in comparison.rows]))
    return map(markdown, parted(table, fixed, widths) if is_wide else [table])


def _cost_text(comparison: Comparison, papers: Iterable[str]) -> str:
    counted = (
        " A player that counts none (symbolic) has the words and the punctuation that a model "
        "would be sent, under a prefix cache in blocks of 16 for each question."
    )
    printed = cost_tables.published_table(papers)
    return pages.page(
        "Cost",
        comparison,
        "Tokens as the engines reported them; computed are the prompt tokens that no prefix cache "
        "held. Replies that the response cache gave count with what they cost at first. The judge "
        "is not in it." + (counted if comparison.simulated else ""),
        *_in_parts(comparison, cost_tables.cost_table(comparison), 3, (6, 4)),
        *([markdown(printed)] if len(printed) > 1 else []),
        f"## How questions ended{mark(comparison.simulated)}",
        markdown(cost_tables.ending_table(comparison)),
    )


def _error_files(comparison: Comparison) -> dict[str, bytes]:
    verified = [row for row in comparison.rows if row.verified]
    if not verified:
        return {}
    names, shown = comparison.names, _drawn(verified)
    return {
        "error_types.csv": csv_bytes(cost_tables.error_type_csv(comparison, verified)),
        "error_types.png": plots.error_types_figure(shown, names),
        "error_positions.csv": csv_bytes(cost_tables.error_position_csv(comparison, verified)),
        "error_positions.png": plots.error_positions_figure(shown, names),
    }


def _failure_files(comparison: Comparison, papers: Iterable[str]) -> dict[str, bytes]:
    found = failures.failures(comparison)
    if not any(one.types for one in found):
        return {}
    text = pages.page(
        "Failures",
        comparison,
        "What a verifier found wrong with steps, by category, over all who answered.",
        markdown(failures.failure_table(found, papers)),
    )
    return {
        "failures.md": text.encode(),
        "failures.csv": csv_bytes(failures.failure_csv(found)),
        "failures.png": failures.failures_figure(found),
    }


def _drawn(rows: Sequence[Row]) -> list[Row]:
    """Of each method with its players one: with its own options if it so ran, else the last."""
    chosen: dict[object, Row] = {}
    for row in rows:
        key = row.system.method, row.system.players
        if key not in chosen or chosen[key].system.departures:
            chosen[key] = row
    return [row for row in rows if row in chosen.values()]


def _sweep_files(comparison: Comparison) -> dict[str, bytes]:
    rows = comparison.rows
    if not swept([row.system for row in rows]):
        return {}
    metric = _told(comparison)
    files = {"sweep.csv": csv_bytes(cost_tables.sweep_csv(comparison))}
    drawn = [row for row in rows if row.average[metric]]
    if swept([row.system for row in drawn]):
        files["sweep.png"] = score_plots.sweep_figure(drawn, metric)
    return files


def _told(comparison: Comparison) -> Metric:
    """What figures draw of each system: accuracy, or exact match where nobody judged."""
    cells = (cell for row in comparison.rows for cell in row.cells.values())
    return "accuracy" if any(cell.scored for cell in cells) else "exact_match"


def _method_files(comparison: Comparison, outcomes: Sequence[Outcome]) -> dict[str, bytes]:
    found = prompting_tables.measured(outcomes, [row.system for row in comparison.rows])
    moving = machines.machine_rows(comparison)
    text = pages.page(
        "Methods",
        comparison,
        " ".join([*pages.in_common(comparison), METHODS_TEXT]),
        markdown(prompting_tables.method_table(comparison, found)),
        *_prompting_parts(comparison, found),
        *_titled(comparison, "At equal cost", EQUAL_COST_TEXT,
                 equal_cost.equal_cost_table(comparison, equal_cost.costs(outcomes))),
        *(["![The machines](machines.svg)"] if moving else []),
        *_titled(comparison, "Transitions", "Moves from state to state; in all, and of the moves "
                 "from that state.", machines.transition_table(comparison)),
    )  # fmt: skip
    files = {
        METHODS_PAGE: text.encode("utf-8", "backslashreplace"),
        "methods.csv": csv_bytes(prompting_tables.method_csv(comparison, found)),
    }
    if moving:
        drawn = [machines.drawn(comparison, row) for row in moving]
        files["machines.svg"] = machines.machines_svg(drawn)
        files["transitions.csv"] = csv_bytes(machines.transition_csv(comparison))
    return files


def _prompting_parts(comparison: Comparison, found: Sequence[prompting_tables.Measured]) -> Iterable[str]:
    for title, said, table in (
        ("How replies could be read", FORM_TEXT, prompting_tables.form_table),
        ("Facts, triples, sub-answers", SUPPORT_TEXT, prompting_tables.support_table),
        ("Why answers failed", FAILURE_TEXT, prompting_tables.failure_table),
    ):
        yield from _titled(comparison, title, said, table(comparison, found))


def _titled(comparison: Comparison, title: str, said: str, table: Table) -> Iterable[str]:
    """A part of a page, unless its table has no row."""
    if len(table) > 1:
        yield from (f"## {title}{mark(comparison.simulated)}", said, markdown(table))
