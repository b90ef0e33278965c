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
from textwrap import fill as wrap
from typing import Any

from evaluators.comparison import comparing, costs, methods, score_tables, scores
from evaluators.comparison.systems import EVERY, MachineCounts, common_options, has_sweep, title_of, values_by_name
from evaluators.outcomes import METRIC_NAMES, Metric, Outcome
from safe_stepwise.store import figures, terminal
from safe_stepwise.store.files import write_files
from safe_stepwise.store.names import COMPARISON, METHODS_PAGE, REPORT_PAGE, marked
from safe_stepwise.store.published_tables import PublishedScore
from safe_stepwise.store.tables import csv_bytes, escaped, fill

TEMPLATES = Path(__file__).parent / "templates"
FILES = (
    COMPARISON, "comparison.csv", "comparison.png", "tests.csv", "cost.md", "cost.csv", "failures.md", "failures.csv",
    "uptake.csv", "sweep.csv", METHODS_PAGE, "methods.csv", "machines.svg", "transitions.csv", REPORT_PAGE,
)  # fmt: skip
"""All files that a report can have."""
_NODE = 4_600
"""The area of a state's circle, in points, which holds its name."""


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
        "comparison.png": draw_scores(comparison, _representatives(comparison.rows)),
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
        files |= {"machines.svg": draw_machines(machines), "transitions.csv": transitions.csv}
    return files


def draw_scores(comparison: scores.Comparison, rows: Sequence[scores.Row]) -> bytes:
    """Draw each system's headline score by benchmark, with 95% intervals, in a panel for each answerer."""
    places = comparison.places
    labels, metric = list(dict.fromkeys(comparison.names[row.system] for row in rows)), comparison.headline

    def panel(axes: Any, group: Sequence[scores.Row]) -> None:
        width = 0.84 / len(labels)
        for row in group:
            place = labels.index(comparison.names[row.system])
            shift = width * (place + 0.5) - 0.42
            intervals = [_interval_at(row, benchmark, metric) for benchmark in places]
            positions = [n + shift for n, interval in enumerate(intervals) if interval]
            tops, below, above = zip(*(interval for interval in intervals if interval), strict=True)
            axes.bar(positions, tops, width * 0.92, color=f"C{place % 10}", label=labels[place])
            axes.errorbar(positions, tops, (below, above), fmt="none", ecolor="#333333", capsize=2, lw=1)
        axes.set_xticks(range(len(places)), [place or scores.AVERAGE for place in places])
        if None in places:
            axes.axvline(len(places) - 1.5, color="#dddddd", linewidth=1)
        axes.set_xlim(-0.5, len(places) - 0.5)
        axes.set_ylim(0, 100)
        axes.set_ylabel(f"{METRIC_NAMES[metric]}, %")
        title = marked(group[0].system.answering, any(row.simulated for row in group))
        axes.set_title(f"{title}, with 95% intervals")
        bars, names = axes.get_legend_handles_labels()
        wrapped = [wrap(name, 28) for name in names]
        axes.legend(bars, wrapped, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))

    drawn_rows = [row for row in rows if any(_interval_at(row, place, metric) for place in places)]
    answering = dict.fromkeys(row.system.answering for row in drawn_rows)
    rows_by_answering = [[row for row in drawn_rows if row.system.answering == answerer] for answerer in answering]
    return figures.panels(panel, [[group] for group in rows_by_answering], (9.0, 3.0), sharey="col")


def _interval_at(row: scores.Row, place: str | None, metric: Metric) -> tuple[float, float, float] | None:
    """Return a score and its margins below and above, in percent; the average if ``place`` is None."""
    cell = row.cells.get(place) if place else None
    estimates = row.average if place is None else cell.estimates if cell else {}
    if (score := estimates.get(metric)) is None:
        return None
    return 100 * score.value, 100 * (score.value - score.low), 100 * (score.high - score.value)


def draw_machines(machines: Sequence[MachineCounts]) -> bytes:
    """Draw the states and edges of each machine as SVG, with how often each edge was taken; dashed: never."""

    def panel(axes: Any, machine: MachineCounts) -> None:
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_nodes_from(machine.states)
        graph.add_edges_from((move.state, move.next_state) for move in machine.moves)
        places, look = nx.circular_layout(graph), {"ax": axes, "connectionstyle": "arc3,rad=-0.3"}
        labels = {state: f"{state} {title_of(machine.system.method, state)}" for state in machine.states}
        counts: dict[tuple[str, str], str] = {}
        for move in machine.moves:
            edge = move.state, move.next_state
            if move.state == move.next_state:
                labels[move.state] += f" (again: {move.count:,})" if move.count else ""
            elif move.count:
                counts[edge], width = f"{move.count:,}", 0.8 + 3 * move.share_of_state
                nx.draw_networkx_edges(graph, places, [edge], width, "#2b5c8a", node_size=_NODE, **look)
            else:
                nx.draw_networkx_edges(graph, places, [edge], 0.8, "#b5b5b5", "dashed", node_size=_NODE, **look)
        nx.draw_networkx_nodes(graph, places, ax=axes, node_size=_NODE, node_color="#f3f6f9", edgecolors="#444444")
        nx.draw_networkx_edge_labels(graph, places, counts, font_size=11, **look)
        texts = {state: wrap(terminal.printable(label), 10) for state, label in labels.items()}
        nx.draw_networkx_labels(graph, places, texts, 10.5, ax=axes)
        axes.set_title(wrap(terminal.printable(machine.title), 70))
        axes.margins(0.15)
        axes.set_axis_off()

    return figures.panels(panel, [[machine] for machine in machines], (8.0, 7.0), figures.svg)
