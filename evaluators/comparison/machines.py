"""What machines did: their edges with counts, as tables and drawn (SG-FSM, Figure 1).

An edge that a machine declares and nothing took counts 0; of a method without a machine of its own
the edges are those that were taken.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import east_asian_width
from xml.etree import ElementTree

from evaluators.comparison.scores import Comparison, Row
from evaluators.comparison.systems import System
from evaluators.prompting.states import edge_text, machine_of, title_of
from safe_stepwise.store.tables import Column, Sheet, percent

ARROW = " → "
"""Between the two states of an edge (`methods.running.transitions`)."""
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_APART, _WIDE, _HIGH, _RISE = 92, 74, 38, 17
"""Pixels between states, of a state's box, and that an edge rises for each state it passes."""
_TAKEN, _UNTAKEN = "#2b5c8a", "#b5b5b5"
_LEGEND = "Numbers: how often an edge was taken. Width: its share of the moves from its state. Dashed: never taken."
_FOOT = 30
"""Pixels for the legend."""
_HALO: dict[str, Any] = {"stroke": "#ffffff", "stroke-width": 3, "paint-order": "stroke"}
"""So that a count can be read where edges cross it."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One system's machine: its states in their order, its edges with how often each was taken."""

    system: System
    title: str
    states: tuple[str, ...]
    edges: dict[tuple[str, str], int]

    @property
    def moves(self) -> int:
        """All of them."""
        return sum(self.edges.values())

    def share(self, edge: tuple[str, str]) -> float:
        """Of all moves."""
        return self.edges[edge] / max(1, self.moves)

    def share_of_state(self, edge: tuple[str, str]) -> float:
        """Of those from the same state."""
        whole = sum(count for (state, _), count in self.edges.items() if state == edge[0])
        return self.edges[edge] / max(1, whole)


def machine_of_row(comparison: Comparison, row: Row) -> Drawn:
    """The machine of a row's method, with the counts of its questions."""
    taken: dict[tuple[str, str], int] = {}
    for text, count in row.loop.transitions.items():
        state, _, to = text.partition(ARROW)
        taken[state, to] = count
    machine = machine_of(row.system.method)
    edges = {**dict.fromkeys(machine.edges if machine else [], 0), **taken}
    known = [*machine.states, *machine.ends] if machine else []
    states = dict.fromkeys([*known, *(state for edge in edges for state in edge)])
    title = f"{row.system.answering}: {comparison.names[row.system]}"
    return Drawn(row.system, title, tuple(states), edges)


def machines(comparison: Comparison) -> list[Drawn]:
    """Those of the systems that went from state to state, more than once."""
    return [machine_of_row(comparison, row) for row in comparison.rows if len(row.loop.transitions) > 1]


@dataclass(frozen=True, slots=True)
class Transition:
    """An edge of a machine."""

    machine: Drawn
    edge: tuple[str, str]

    @property
    def system(self) -> System:
        return self.machine.system

    @property
    def count(self) -> int:
        return self.machine.edges[self.edge]


def transition_sheet(comparison: Comparison, transitions: Sequence[Transition]) -> Sheet[Transition]:
    """Edges: how often each was taken, the share of all moves, of those from their state."""
    columns: list[Column[Transition]] = [
        *comparison.subject,
        Column("edge", lambda move: edge_text(move.system.method, *move.edge)),
        Column("", lambda move: move.edge[0], key="state"),
        Column("", lambda move: move.edge[1], key="next_state"),
        Column("count", lambda move: move.count, key="count"),
        Column("share, %", lambda move: move.machine.share(move.edge), percent, "percent"),
        Column("of its state, %", lambda move: move.machine.share_of_state(move.edge), percent, "percent_of_state"),
    ]
    return Sheet(columns, transitions)


def transitions(machines: Sequence[Drawn]) -> list[Transition]:
    """All edges, those that nothing took among them."""
    return [Transition(machine, edge) for machine in machines for edge in machine.edges]


def taken(machines: Sequence[Drawn]) -> list[Transition]:
    """The edges that were taken, of each machine the most frequent first."""
    return [
        move
        for machine in machines
        for move in sorted(transitions([machine]), key=lambda move: -move.count)
        if move.count
    ]


def machines_svg(machines: Sequence[Drawn]) -> bytes:
    """The machines one below the other, as SVG without scripts, styles or links.

    States stand in a line; an edge onwards goes above it, an edge back below, with its count; its
    width is the share of the moves from its state. One that was never taken is dashed.
    """
    panels = [(machine, _reach(machine)) for machine in machines]
    states = max(len(machine.states) for machine in machines) * _APART
    texts = [_wide(_headed(machine), 14) for machine in machines]
    width = max(states, _wide(_LEGEND, 11), *texts) + 20
    height = sum(above + below for _, (above, below) in panels) + _FOOT
    root = ElementTree.Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=str(width),
        height=str(height),
        role="img",
    )
    root.set("font-family", "sans-serif")
    _text(root, "title", "What the machines did")
    _markers(root)
    _add(root, "rect", width=width, height=height, fill="#ffffff")
    top = 0
    for machine, (above, below) in panels:
        _panel(root, machine, top, top + above)
        top += above + below
    _text(root, "text", _LEGEND, x=10, y=top + _FOOT - 10, size=11)
    ElementTree.indent(root, " ")
    text: str = ElementTree.tostring(root, encoding="unicode")
    return f"{text}\n".encode()


def _headed(machine: Drawn) -> str:
    return f"{machine.title} ({machine.moves:,} moves)"


def _wide(text: str, size: int) -> int:
    """Pixels that a text takes at most, or nearly so: two thirds of its size a letter, or all."""
    return sum(size if east_asian_width(c) in "WF" else -(-2 * size // 3) for c in text)


def _reach(machine: Drawn) -> tuple[int, int]:
    """Pixels above and below the line of states."""
    spans = [machine.states.index(to) - machine.states.index(at) for at, to in machine.edges]
    above = max((span for span in spans if span > 0), default=1)
    below = max((-span for span in spans if span < 0), default=0)
    return 64 + _HIGH // 2 + _RISE * (above + 1), 34 + _HIGH // 2 + _RISE * (below + 1)


def _panel(root: ElementTree.Element, machine: Drawn, top: int, line: int) -> None:
    _text(root, "text", _headed(machine), x=10, y=top + 22, size=14, weight="bold")
    order = sorted(machine.edges.items(), key=lambda item: item[1])
    labels = [_draw_edge(root, machine, edge, count, line) for edge, count in order]
    for place, state in enumerate(machine.states):
        x = _place(place)
        is_end = all(at != state for at, _ in machine.edges)
        _add(root, "rect", x=x - _WIDE / 2, y=line - _HIGH / 2, width=_WIDE, height=_HIGH,
             rx=_HIGH / 2 if is_end else 6, fill="#f3f6f9", stroke="#444444")  # fmt: skip
        title = title_of(machine.system.method, state)
        _text(root, "text", state, x=x, y=line - 2 if title else line + 4, size=12,
              weight="bold", anchor="middle")  # fmt: skip
        if title:
            _text(root, "text", title, x=x, y=line + 12, size=10, anchor="middle")
    for at, y, count in labels:
        fill = _TAKEN if count else "#767676"
        _text(root, "text", f"{count:,}", x=at, y=y, size=10, anchor="middle", fill=fill, **_HALO)


def _draw_edge(
    root: ElementTree.Element, machine: Drawn, edge: tuple[str, str], count: int, line: int
) -> tuple[float, float, int]:
    """The edge without its count, and where that is to stand."""
    start, end = (machine.states.index(state) for state in edge)
    span = end - start
    side = 1 if span < 0 else -1  # below the line, or above it
    y = line + side * _HIGH / 2
    first, last = _place(start), _place(end)
    shift = 14 if span else 18
    first, last = first - side * shift, last + side * shift
    rise = _RISE * (abs(span) + 1) if span else _RISE
    sweep = 0 if span == 0 else 1
    radius = max(abs(last - first) / 2, 1)
    color = _TAKEN if count else _UNTAKEN
    path = f"M {first} {y} A {radius} {rise} 0 0 {sweep} {last} {y}"
    more = {} if count else {"stroke-dasharray": "3 4"}
    arrow = {"marker-end": f"url(#{'taken' if count else 'untaken'})"}
    width = f"{1 + 4 * machine.share_of_state(edge):.2f}" if count else "0.8"
    _add(root, "path", d=path, fill="none", stroke=color, **{"stroke-width": width}, **more, **arrow)
    return (first + last) / 2, y + side * rise + (12 if side > 0 else -3), count


def _place(number: int) -> int:
    return 10 + _APART // 2 + _APART * number


def _markers(root: ElementTree.Element) -> None:
    """Heads of arrows, of one size however wide the edge."""
    definitions = ElementTree.SubElement(root, "defs")
    for name, color in (("taken", _TAKEN), ("untaken", _UNTAKEN)):
        marker = ElementTree.SubElement(
            definitions, "marker", id=name, viewBox="0 0 8 8", refX="7", refY="4", orient="auto",
            markerWidth="9", markerHeight="9", markerUnits="userSpaceOnUse",
        )  # fmt: skip
        ElementTree.SubElement(marker, "path", d="M 0 0 L 8 4 L 0 8 z", fill=color)


def _add(parent: ElementTree.Element, tag: str, **attributes: object) -> ElementTree.Element:
    return ElementTree.SubElement(parent, tag, {n: str(v) for n, v in attributes.items()})


def _text(
    parent: ElementTree.Element,
    tag: str,
    text: str,
    size: int = 0,
    weight: str = "",
    anchor: str = "",
    **attributes: object,
) -> None:
    """A text, whatever it holds."""
    told = {"font-size": size, "font-weight": weight, "text-anchor": anchor}
    known = {name: value for name, value in told.items() if value}
    _add(parent, tag, **{**known, **attributes}).text = _NOT_XML.sub("\ufffd", text)
