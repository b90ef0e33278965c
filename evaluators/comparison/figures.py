"""Draw the figures of a report: scores and state machines; equal numbers give equal bytes."""

from collections.abc import Sequence
from textwrap import fill
from typing import Any

from evaluators.comparison import scores, systems
from evaluators.outcomes import METRIC_NAMES, Metric
from safe_stepwise.store import figures, terminal
from safe_stepwise.store.names import marked

_NODE = 4_600
"""The area of a state's circle, in points, which holds its name."""


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
        wrapped = [fill(name, 28) for name in names]
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


def draw_machines(machines: Sequence[systems.MachineCounts]) -> bytes:
    """Draw the states and edges of each machine as SVG, with how often each edge was taken; dashed: never."""

    def panel(axes: Any, machine: systems.MachineCounts) -> None:
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_nodes_from(machine.states)
        graph.add_edges_from((move.state, move.next_state) for move in machine.moves)
        places, look = nx.circular_layout(graph), {"ax": axes, "connectionstyle": "arc3,rad=-0.3"}
        labels = {state: f"{state} {systems.title_of(machine.system.method, state)}" for state in machine.states}
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
        texts = {state: fill(terminal.printable(label), 10) for state, label in labels.items()}
        nx.draw_networkx_labels(graph, places, texts, 10.5, ax=axes)
        axes.set_title(fill(terminal.printable(machine.title), 70))
        axes.margins(0.15)
        axes.set_axis_off()

    return figures.panels(panel, [[machine] for machine in machines], (8.0, 7.0), figures.svg)
