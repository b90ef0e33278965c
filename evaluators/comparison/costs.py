"""Render tables of cost (SAFE v1, Table 8), stop reasons, errors (Figures 3 and 4), sweeps, and moves of machines.

The states and moves of a method's state machine are also drawn as SVG (SG-FSM, Figure 1). An edge that a machine
declares and no question took counts 0; a method without a declared machine has only the edges that questions took.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unicodedata import east_asian_width
from xml.sax.saxutils import escape

from evaluators.comparison.scores import CSV_ONLY, EARLY, Comparison, Failures, Row, bounds, categories, error_types
from evaluators.comparison.systems import EVERY, System, edge_text, machine_of, name_systems, title_of
from evaluators.outcomes import METRICS, grouped
from safe_stepwise.methods.loop import OUT_OF_STEPS
from safe_stepwise.methods.searching import NO_EVIDENCE
from safe_stepwise.records import ANSWERED, FAILED
from safe_stepwise.store import published_tables
from safe_stepwise.store.names import marked
from safe_stepwise.store.tables import NOTHING, Column, Sheet, Table, count, decimal, environment, percent
from safe_stepwise.taxonomy import category

_TOKEN_KINDS, _THOUGHT = ("prompt", "cached", "computed", "completion"), "thought"
"""Kinds of tokens; tables have columns for tokens of thoughts only if there are any."""
_STOP_TITLES = {OUT_OF_STEPS: "out of steps", NO_EVIDENCE: "no evidence found"}
"""Column titles of stop reasons whose own name is unclear."""


@dataclass(frozen=True, slots=True)
class RoleCost:
    """The calls and tokens of a system in one role, or in all of them (``overall``)."""

    system: System
    role: str
    questions: int
    calls: int
    prompt: int
    cached: int
    computed: int
    completion: int
    thought: int


def cost_sheet(comparison: Comparison) -> Sheet[RoleCost]:
    """Return calls and tokens of each system by role, in total and per question."""
    has_thought = any(row.loop.thought_tokens for row in comparison.rows)
    columns: list[Column[RoleCost]] = [
        *comparison.subject,
        Column(CSV_ONLY, lambda cost: cost.questions, key="questions"),
        Column("role", lambda cost: cost.role, key="role"),
        Column(CSV_ONLY, lambda cost: cost.calls, key="calls"),
        Column("calls / question", lambda cost: cost.calls / max(1, cost.questions), decimal(2), "calls_per_question"),
        Column("prompt", lambda cost: cost.prompt, count, "prompt_tokens"),
        Column("cached", lambda cost: cost.cached, count, "cached_tokens"),
        Column("computed", lambda cost: cost.computed, count, "computed_tokens"),
        Column("cached share, %", lambda c: c.cached / c.prompt if c.prompt else None, percent, "cached_percent"),
        Column("completion", lambda cost: cost.completion, count, "completion_tokens"),
        *([Column(_THOUGHT, lambda cost: cost.thought, count, "thought_tokens")] if has_thought else []),
    ]
    for kind in (*_TOKEN_KINDS, *([_THOUGHT] if has_thought else [])):
        per_question = lambda cost, kind=kind: getattr(cost, kind) / max(1, cost.questions)  # noqa: E731
        columns.append(Column(f"{kind} / question", per_question, decimal(1), f"{kind}_tokens_per_question"))
    return Sheet(columns, [cost for row in comparison.rows for cost in _role_costs(row)])


def _role_costs(row: Row) -> Iterator[RoleCost]:
    active_roles = [role for role in row.players if row.loop.calls.get(role)]
    for name, roles in [*((role, [role]) for role in active_roles), ("overall", active_roles)]:
        calls = sum(row.loop.calls[role] for role in roles)
        spent = [getattr(row.loop, f"{kind}_tokens") for kind in (*_TOKEN_KINDS, _THOUGHT)]
        tokens = [sum(by_role.get(role, 0) for role in roles) for by_role in spent]
        yield RoleCost(row.system, name, row.loop.questions, calls, *tokens)


def published_table(papers: Iterable[str]) -> Table:
    """Return the tokens that papers report; without papers the table has only its header."""
    table: Table = [("published", "role", "total", "cached", "computed", "cached share, %")]
    for row in published_tables.published().tokens:
        if row.paper in papers:
            millions = (row.total_millions, row.cached_millions, row.computed_millions)
            source = f"{published_tables.PAPERS[row.paper]}, Table {row.table} (published)"
            table.append([source, row.role, *(f"{number:.1f}M" for number in millions), row.cached_percent])
    return table


def ending_sheet(comparison: Comparison) -> Sheet[Row]:
    """Return each system's steps per question and its number of questions by stop reason."""

    def stopped(stop: str) -> Column[Row]:
        return Column(_STOP_TITLES.get(stop, stop), lambda row: row.loop.stop_reasons.get(stop, 0))

    exhausted = lambda row: row.loop.exhausted if "max_retries" in dict(row.system.options) else None  # noqa: E731
    columns: list[Column[Row]] = [
        *comparison.subject,
        Column("questions", lambda row: row.loop.questions),
        Column("steps / question", lambda row: row.loop.steps_per_question, decimal(2)),
        *map(stopped, _stops(comparison)),
        Column("replies that are no step", lambda row: row.loop.malformed),
        Column("retries used up", exhausted),
        Column("steps accepted unverified", lambda row: row.loop.unverified),
    ]
    return Sheet(columns, comparison.rows)


def _stops(comparison: Comparison) -> list[str]:
    """Return the stop reasons that are columns: those that occurred, and out of steps where steps are limited."""
    options = {name for row in comparison.rows for name, _ in row.system.options}
    reasons = [stop for row in comparison.rows for stop in row.loop.stop_reasons]
    unique = dict.fromkeys([*options & {OUT_OF_STEPS}, *reasons])
    return [ANSWERED, *(stop for stop in unique if stop not in (ANSWERED, FAILED)), FAILED]


def error_type_csv(comparison: Comparison, rows: Sequence[Row]) -> Table:
    """Return the attempts with an error of each system, by error type."""
    table: Table = [(*comparison.columns, "error_type", "category", "steps", "percent")]
    for row in rows:
        types = row.loop.error_types
        for name in error_types(types):
            steps = types.get(name, 0)
            share = percent(steps / sum(types.values())) if types else ""
            table.append([*comparison.identify(row), name, category(name), steps, share])
    return table


def error_position_csv(comparison: Comparison, rows: Sequence[Row]) -> Table:
    """Return the attempts with an error of each system, by the number of the step."""
    table: Table = [(*comparison.columns, "position", "steps", "percent", "cumulative_percent")]
    for row in rows:
        positions, so_far = row.loop.error_positions, 0
        for position, steps in sorted(positions.items()):
            so_far += steps
            shares = [percent(number / sum(positions.values())) for number in (steps, so_far)]
            table.append([*comparison.identify(row), position, steps, *shares])
    return table


def sweep_csv(comparison: Comparison) -> Table:
    """Return the average scores in percent and the cost of each system, with its K and N."""
    columns = [f"{metric}{bound}" for metric in METRICS for bound in ("", "_low", "_high")]
    table: Table = [(*comparison.columns, *columns, "calls_per_question", "computed_per_question")]
    for row in comparison.rows:
        loop = row.loop
        scores = [cell for metric in METRICS for cell in bounds(row.average[metric])]
        computed = sum(loop.computed_tokens.values()) / max(1, loop.questions)
        table.append([*comparison.identify(row), *scores, *[f"{loop.calls_per_question:.2f}", f"{computed:.1f}"]])
    return table


def count_failures(comparison: Comparison) -> list[Failures]:
    """Count the errors that verifiers found for each method; simulated and real players are never mixed."""
    verified = (row for row in comparison.rows if row.verified)
    groups = grouped(verified, lambda row: (row.system.answered_by(EVERY), row.simulated))
    titles = name_systems([system for system, _ in groups])
    return [
        Failures(
            marked(titles[system], simulated),
            simulated,
            tuple(row.system.answering for row in rows),
            sum((Counter(row.loop.error_types) for row in rows), Counter()),
            sum((Counter(row.loop.error_positions) for row in rows), Counter()),
        )
        for (system, simulated), rows in groups.items()
    ]


def failure_table(methods: Sequence[Failures], papers: Iterable[str] = ()) -> Table:
    """Return the share of errors in each category and in early steps, followed by the figures of ``papers``."""
    columns = categories(methods)
    header = ("method", "over", "steps at fault", *(f"{name}, %" for name in columns))
    table: Table = [(*header, f"in the first {EARLY} steps, %")]
    for method in methods:
        shares = [*map(method.category_share, columns), method.early]
        table.append([method.name, ", ".join(method.answering), method.types.total(), *map(percent, shares)])
    for paper in papers:
        printed = [p for p in published_tables.published().failures if p.paper == paper]
        percent_by_category = {p.category: f"{p.percent:.1f}" for p in printed}
        figures = " and ".join(p.figure for p in printed)
        name = f"SAFE (published: SAFE {paper}, Figures {figures})"
        table.append([name, NOTHING, NOTHING, *(percent_by_category.get(name, NOTHING) for name in (*columns, ""))])
    return table


def failure_csv(methods: Sequence[Failures]) -> Table:
    """Return the errors of each method by category and type."""
    table: Table = [("method", "over", "category", "error_type", "steps", "percent", "simulated")]
    for method in methods:
        over, simulated = "; ".join(method.answering), str(method.simulated).lower()
        for name in error_types(method.types):
            steps = method.types[name]
            table.append([method.name, over, category(name), name, steps, percent(method.share(steps)), simulated])
    return table


ARROW = " → "
"""The text between the two states of an edge (`methods.running.transitions`)."""
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STATE_SPACING, _STATE_HEIGHT, _EDGE_RISE = 92, 38, 17
"""Pixels between states, of a state's height, and by which an edge rises for each state that it passes."""
_LEGEND = "Numbers: how often an edge was taken. Width: its share of the moves from its state. Dashed: never taken."
_LEGEND_HEIGHT = 30
"""Pixels."""


@dataclass(frozen=True, slots=True)
class Transition:
    """An edge of a system's machine, how often questions took it, and its shares (0-1) in moves."""

    system: System
    state: str
    next_state: str
    count: int
    share: float
    """Of all moves of the machine."""
    share_of_state: float
    """Of the moves from its state."""


@dataclass(frozen=True, slots=True)
class MachineCounts:
    """The state machine of a system: its states in their order, and its edges."""

    system: System
    title: str
    states: tuple[str, ...]
    transitions: tuple[Transition, ...]

    def ends(self, move: Transition) -> tuple[int, int]:
        """Return the indices of an edge's two states."""
        return self.states.index(move.state), self.states.index(move.next_state)


def count_moves(comparison: Comparison) -> list[MachineCounts]:
    """Count the moves of each system that took two or more edges."""
    names, machines = comparison.names, []
    for row in comparison.rows:
        if len(row.loop.transitions) > 1:
            machine = machine_of(row.system.method)
            counts = dict.fromkeys(machine.edges if machine else [], 0)
            for edge, count in row.loop.transitions.items():
                state, _, next_state = edge.partition(ARROW)
                counts[state, next_state] = count
            declared = [*machine.states, *machine.ends] if machine else []
            states = dict.fromkeys([*declared, *(state for edge in counts for state in edge)])
            total = max(1, sum(counts.values()))
            of_state = {state: max(1, sum(n for edge, n in counts.items() if edge[0] == state)) for state in states}
            transitions = tuple(
                Transition(row.system, *edge, n, n / total, n / of_state[edge[0]]) for edge, n in counts.items()
            )
            title = f"{row.system.answering}: {names[row.system]}"
            machines.append(MachineCounts(row.system, title, tuple(states), transitions))
    return machines


def transition_sheet(
    comparison: Comparison, machines: Sequence[MachineCounts], *, only_taken: bool = False
) -> Sheet[Transition]:
    """Return a row for each edge; ``only_taken``: for each that questions took, a machine's most frequent first."""
    columns: list[Column[Transition]] = [
        *comparison.subject,
        Column("edge", lambda move: edge_text(move.system.method, move.state, move.next_state)),
        Column(CSV_ONLY, lambda move: move.state, key="state"),
        Column(CSV_ONLY, lambda move: move.next_state, key="next_state"),
        Column("count", lambda move: move.count, key="count"),
        Column("share, %", lambda move: move.share, percent, "percent"),
        Column("of its state, %", lambda move: move.share_of_state, percent, "percent_of_state"),
    ]
    moves = [move for machine in machines for move in machine.transitions]
    if only_taken:
        by_frequency = (sorted(machine.transitions, key=lambda move: -move.count) for machine in machines)
        moves = [move for transitions in by_frequency for move in transitions if move.count]
    return Sheet(columns, moves)


def draw_machines(machines: Sequence[MachineCounts]) -> bytes:
    """Draw the machines one below the other, as SVG without scripts, styles or links.

    The states of a machine form a row; forward edges go above it and backward edges below, each with its count. The
    width of an edge is its share in the moves from its state. An edge that no question took is dashed.
    """
    panels, top = [], 0
    for machine in machines:
        spans = [
            machine.states.index(move.next_state) - machine.states.index(move.state) for move in machine.transitions
        ]
        above = max((span for span in spans if span > 0), default=1)
        below = max((-span for span in spans if span < 0), default=0)
        line = top + 64 + _STATE_HEIGHT // 2 + _EDGE_RISE * (above + 1)
        panels.append(_panel(machine, top, line))
        top = line + 34 + _STATE_HEIGHT // 2 + _EDGE_RISE * (below + 1)
    states = max(len(machine.states) for machine in machines) * _STATE_SPACING
    texts = [_text_width(panel["title"], 14) for panel in panels]
    width = max(states, _text_width(_LEGEND, 11), *texts) + 20
    templates = environment((Path(__file__).parent / "templates",))
    templates.filters["xml"] = lambda text: escape(_NOT_XML.sub("\ufffd", text))
    svg = templates.get_template("machines.svg.jinja")
    return svg.render(panels=panels, width=width, height=top + _LEGEND_HEIGHT, legend=_LEGEND).encode()


def _text_width(text: str, size: int) -> int:
    """Estimate the width of a text in pixels: its size for a wide character, two thirds of that for any other."""
    return sum(size if east_asian_width(c) in "WF" else -(-2 * size // 3) for c in text)


def _panel(machine: MachineCounts, top: int, line: int) -> dict[str, Any]:
    """Lay out a machine; its row of states is ``line`` pixels from the top of the drawing."""
    method, starts = machine.system.method, {move.state for move in machine.transitions}
    return {
        "title": f"{machine.title} ({sum(move.count for move in machine.transitions):,} moves)",
        "title_y": top + 22,
        "line": line,
        "arcs": [_arc(machine, move, line) for move in sorted(machine.transitions, key=lambda move: move.count)],
        "states": [
            {"x": _state_x(n), "name": state, "title": title_of(method, state), "is_end": state not in starts}
            for n, state in enumerate(machine.states)
        ],
    }


def _arc(machine: MachineCounts, move: Transition, line: int) -> dict[str, Any]:
    start, end = machine.ends(move)
    span = end - start
    side = 1 if span < 0 else -1  # below the line, or above it
    y = line + side * _STATE_HEIGHT / 2
    shift = 14 if span else 18
    first, last = _state_x(start) - side * shift, _state_x(end) + side * shift
    rise = _EDGE_RISE * (abs(span) + 1) if span else _EDGE_RISE
    radius = max(abs(last - first) / 2, 1)
    return {
        "path": f"M {first} {y} A {radius} {rise} 0 0 {0 if span == 0 else 1} {last} {y}",
        "width": f"{1 + 4 * move.share_of_state:.2f}" if move.count else "0.8",
        "count": move.count,
        "label_x": (first + last) / 2,
        "label_y": y + side * rise + (12 if side > 0 else -3),
    }


def _state_x(number: int) -> int:
    return 10 + _STATE_SPACING // 2 + _STATE_SPACING * number
