"""Render tables of cost (SAFE v1, Table 8), stop reasons, errors (Figures 3 and 4), sweeps, and moves of machines.

An edge that a machine declares and no question took counts 0; a method without a declared machine has only the edges
that questions took.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from evaluators.comparison.scores import CSV_ONLY, EARLY, Comparison, Failures, Row, bounds, categories, error_types
from evaluators.comparison.systems import EVERY, MachineCounts, System, Transition, edge_text, machine_of, name_systems
from evaluators.outcomes import METRICS, grouped
from evaluators.uptake import EARNED, RETRIES, UPTAKES, WAVED_THROUGH
from safe_stepwise.methods.loop import OUT_OF_STEPS, VERIFIER
from safe_stepwise.methods.searching import NO_EVIDENCE
from safe_stepwise.records import ANSWERED, FAILED
from safe_stepwise.store import published_tables
from safe_stepwise.store.names import marked
from safe_stepwise.store.tables import NOTHING, Column, Sheet, Table, count, decimal, percent
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
        *(Column(kind, attrgetter(kind), count, f"{kind}_tokens") for kind in ("prompt", "cached", "computed")),
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
        if row["paper"] in papers:
            millions = (f"{row[f'{kind}_millions']:.1f}M" for kind in ("total", "cached", "computed"))
            source = f"{published_tables.PAPERS[row['paper']]}, Table {row['table']} (published)"
            table.append([source, row["role"], *millions, row["cached_percent"]])
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
    return [*dict.fromkeys([ANSWERED, *options & {OUT_OF_STEPS}, *(r for r in reasons if r != FAILED)]), FAILED]


@dataclass(frozen=True, slots=True)
class UptakeRow:
    """What became of a system's retries after rejections with an error type."""

    system: System
    verifier: str
    error_type: str
    counts: Mapping[str, int]


def uptake_sheet(comparison: Comparison) -> Sheet[UptakeRow]:
    """Return the shares of retries by uptake, for each system with retries, in total and by error type."""

    def share(title: str, key: str, *total: str) -> Column[UptakeRow]:
        def value(row: UptakeRow) -> float | None:
            size = sum(row.counts[name] for name in total)
            return row.counts[key] / size if size else None

        return Column(f"{title}, %", value, percent, key)

    checked = EARNED, WAVED_THROUGH
    columns: list[Column[UptakeRow]] = [
        *comparison.subject,
        Column("verifier", lambda row: row.verifier),
        Column("rejected as", lambda row: row.error_type, key="error_type"),
        Column(RETRIES, lambda row: row.counts[RETRIES], count, RETRIES),
        *(share(key.replace("_", " "), key, RETRIES) for key in UPTAKES),
        Column("mended and checked", lambda row: sum(row.counts[key] for key in checked), count, "checked"),
        share("of these right", EARNED, *checked),
    ]
    return Sheet(columns, [uptake for row in comparison.rows for uptake in _uptake_rows(row)])


def _uptake_rows(row: Row) -> Iterator[UptakeRow]:
    total = sum(map(Counter[str], row.uptake.values()), Counter[str]())
    verifier = row.players.get(VERIFIER, row.system.answering)
    for error_type, counts in [*({"all": total} if total else {}).items(), *row.uptake.items()]:
        yield UptakeRow(row.system, verifier, error_type, counts)


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
        printed = [p for p in published_tables.published().failures if p["paper"] == paper]
        percent_by_category = {p.get("category", ""): f"{p['percent']:.1f}" for p in printed}
        figures = " and ".join(p["figure"] for p in printed)
        name = f"SAFE (published: SAFE {paper}, Figures {figures})"
        table.append([name, NOTHING, NOTHING, *(percent_by_category.get(name, NOTHING) for name in (*columns, ""))])
    return table


def position_table(methods: Sequence[Failures]) -> Table:
    """Return the share of errors at each step, by its number."""
    numbers = sorted({number for method in methods for number in method.positions})
    rows = ((method.name, *(percent(method.share(method.positions[n])) for n in numbers)) for method in methods)
    return [("method", *(f"step {n}, %" for n in numbers)), *rows]


def failure_csv(methods: Sequence[Failures]) -> Table:
    """Return the errors of each method by category and type."""
    table: Table = [("method", "over", "category", "error_type", "steps", "percent", "simulated")]
    for method in methods:
        over, simulated = "; ".join(method.answering), str(method.simulated).lower()
        for name in error_types(method.types):
            steps = method.types[name]
            table.append([method.name, over, category(name), name, steps, percent(method.share(steps)), simulated])
    return table


def count_moves(comparison: Comparison) -> list[MachineCounts]:
    """Count the moves of each system that took two or more edges."""
    names, machines = comparison.names, []
    for row in comparison.rows:
        if len(row.loop.transitions) > 1:
            machine = machine_of(row.system.method)
            counts = dict.fromkeys(machine.edges if machine else [], 0)
            for edge, count in row.loop.transitions.items():
                state, _, next_state = edge.partition(" → ")  # as `methods.running.transitions` writes edges
                counts[state, next_state] = count
            declared = [*machine.states, *machine.ends] if machine else []
            states = dict.fromkeys([*declared, *(state for edge in counts for state in edge)])
            total = sum(counts.values())
            of_state = {state: max(1, sum(n for edge, n in counts.items() if edge[0] == state)) for state in states}
            moves = (Transition(row.system, *edge, n, n / total, n / of_state[edge[0]]) for edge, n in counts.items())
            title = f"{row.system.answering}: {names[row.system]} ({total:,} moves)"
            machines.append(MachineCounts(row.system, title, tuple(states), tuple(moves)))
    return machines


def transition_sheet(comparison: Comparison, machines: Sequence[MachineCounts]) -> Sheet[Transition]:
    """Return a row for each edge, a machine's most frequent first."""
    columns: list[Column[Transition]] = [
        *comparison.subject,
        Column("edge", lambda move: edge_text(move.system.method, move.state, move.next_state)),
        *(Column(CSV_ONLY, attrgetter(name), key=name) for name in ("state", "next_state")),
        Column("count", lambda move: move.count, key="count"),
        Column("share, %", lambda move: move.share, percent, "percent"),
        Column("of its state, %", lambda move: move.share_of_state, percent, "percent_of_state"),
    ]
    by_frequency = (sorted(machine.moves, key=lambda move: -move.count) for machine in machines)
    return Sheet(columns, [move for moves in by_frequency for move in moves])
