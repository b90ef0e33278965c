"""The edges of machines with their counts, as tables and drawn (SG-FSM, Figure 1).

A declared edge that no question took counts 0; a method without a machine of its own has only the
edges that questions took.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unicodedata import east_asian_width
from xml.sax.saxutils import escape

from evaluators.comparison.scores import Comparison
from evaluators.comparison.systems import System, edge_text, machine_of, title_of
from safe_stepwise.store.tables import Column, Sheet, environment, percent

ARROW = " → "
"""Between the two states of an edge (`methods.running.transitions`)."""
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_APART, _HIGH, _RISE = 92, 38, 17
"""Pixels between states, of a state's height, and that an edge rises for each state it passes."""
_LEGEND = "Numbers: how often an edge was taken. Width: its share of the moves from its state. Dashed: never taken."
_FOOT = 30
"""Pixels for the legend."""


@dataclass(frozen=True, slots=True)
class MachineCounts:
    """One system's machine: its states in their order, its edges with how often each was taken."""

    system: System
    title: str
    states: tuple[str, ...]
    edges: dict[tuple[str, str], int]

    @property
    def moves(self) -> int:
        return sum(self.edges.values())

    def share(self, edge: tuple[str, str]) -> float:
        """Return an edge's share of all moves."""
        return self.edges[edge] / max(1, self.moves)

    def share_of_state(self, edge: tuple[str, str]) -> float:
        """Return an edge's share of the moves from its state."""
        total = sum(count for (state, _), count in self.edges.items() if state == edge[0])
        return self.edges[edge] / max(1, total)


def machines(comparison: Comparison) -> list[MachineCounts]:
    """Count the moves of each system that went from state to state more than once."""
    names, counts = comparison.names, []
    for row in comparison.rows:
        if len(row.loop.transitions) > 1:
            machine = machine_of(row.system.method)
            edges = dict.fromkeys(machine.edges if machine else [], 0)
            for edge, count in row.loop.transitions.items():
                state, _, next_state = edge.partition(ARROW)
                edges[state, next_state] = count
            declared = [*machine.states, *machine.ends] if machine else []
            states = dict.fromkeys([*declared, *(state for edge in edges for state in edge)])
            counts.append(
                MachineCounts(row.system, f"{row.system.answering}: {names[row.system]}", tuple(states), edges)
            )
    return counts


@dataclass(frozen=True, slots=True)
class Transition:
    """An edge of a machine."""

    machine: MachineCounts
    edge: tuple[str, str]

    @property
    def system(self) -> System:
        return self.machine.system

    @property
    def count(self) -> int:
        return self.machine.edges[self.edge]


def transition_sheet(comparison: Comparison, all_transitions: Sequence[Transition]) -> Sheet[Transition]:
    """Return edges with their counts, and their shares of all moves and of the moves from their state."""
    columns: list[Column[Transition]] = [
        *comparison.subject,
        Column("edge", lambda move: edge_text(move.system.method, *move.edge)),
        Column("", lambda move: move.edge[0], key="state"),
        Column("", lambda move: move.edge[1], key="next_state"),
        Column("count", lambda move: move.count, key="count"),
        Column("share, %", lambda move: move.machine.share(move.edge), percent, "percent"),
        Column("of its state, %", lambda move: move.machine.share_of_state(move.edge), percent, "percent_of_state"),
    ]
    return Sheet(columns, all_transitions)


def all_transitions(machines: Sequence[MachineCounts]) -> list[Transition]:
    """Return all edges, also those that no question took."""
    return [Transition(machine, edge) for machine in machines for edge in machine.edges]


def taken_transitions(machines: Sequence[MachineCounts]) -> list[Transition]:
    """Return the edges that questions took, for each machine the most frequent first."""
    return [
        move
        for machine in machines
        for move in sorted(all_transitions([machine]), key=lambda move: -move.count)
        if move.count
    ]


def machines_svg(machines: Sequence[MachineCounts]) -> bytes:
    """Draw the machines one below the other, as SVG without scripts, styles or links.

    States stand in a line; a forward edge goes above it, a backward edge below, with its count; its
    width is the share of the moves from its state. An edge that no question took is dashed.
    """
    panels, top = [], 0
    for machine in machines:
        spans = [machine.states.index(end) - machine.states.index(start) for start, end in machine.edges]
        above = max((span for span in spans if span > 0), default=1)
        below = max((-span for span in spans if span < 0), default=0)
        line = top + 64 + _HIGH // 2 + _RISE * (above + 1)
        panels.append(_panel(machine, top, line))
        top = line + 34 + _HIGH // 2 + _RISE * (below + 1)
    states = max(len(machine.states) for machine in machines) * _APART
    texts = [_text_width(panel["title"], 14) for panel in panels]
    width = max(states, _text_width(_LEGEND, 11), *texts) + 20
    templates = environment((Path(__file__).parent / "templates",))
    templates.filters["xml"] = lambda text: escape(_NOT_XML.sub("\ufffd", text))
    svg = templates.get_template("machines.svg.jinja")
    return svg.render(panels=panels, width=width, height=top + _FOOT, legend=_LEGEND).encode()


def _text_width(text: str, size: int) -> int:
    """Estimate a text's width in pixels: two thirds of its size a letter, the whole for wide ones."""
    return sum(size if east_asian_width(c) in "WF" else -(-2 * size // 3) for c in text)


def _panel(machine: MachineCounts, top: int, line: int) -> dict[str, Any]:
    """Lay out a machine whose states stand at the height ``line``."""
    return {
        "title": f"{machine.title} ({machine.moves:,} moves)",
        "title_y": top + 22,
        "line": line,
        "arcs": [_arc(machine, edge, line) for edge in sorted(machine.edges, key=lambda edge: machine.edges[edge])],
        "states": [
            {
                "x": _place(place),
                "name": state,
                "title": title_of(machine.system.method, state),
                "is_end": all(start != state for start, _ in machine.edges),
            }
            for place, state in enumerate(machine.states)
        ],
    }


def _arc(machine: MachineCounts, edge: tuple[str, str], line: int) -> dict[str, Any]:
    """Lay out an edge and the place of its count."""
    start, end = (machine.states.index(state) for state in edge)
    span, count = end - start, machine.edges[edge]
    side = 1 if span < 0 else -1  # below the line, or above it
    y = line + side * _HIGH / 2
    shift = 14 if span else 18
    first, last = _place(start) - side * shift, _place(end) + side * shift
    rise = _RISE * (abs(span) + 1) if span else _RISE
    radius = max(abs(last - first) / 2, 1)
    return {
        "path": f"M {first} {y} A {radius} {rise} 0 0 {0 if span == 0 else 1} {last} {y}",
        "width": f"{1 + 4 * machine.share_of_state(edge):.2f}" if count else "0.8",
        "count": count,
        "label_x": (first + last) / 2,
        "label_y": y + side * rise + (12 if side > 0 else -3),
    }


def _place(number: int) -> int:
    return 10 + _APART // 2 + _APART * number
