"""The tables of what systems did: costs (SAFE v1, Table 8), errors (Figures 3, 4), K × N sweep."""

from collections.abc import Iterable, Sequence

from evaluators.comparison.scores import METRICS, Comparison, Row
from evaluators.comparison.tables import bounds, error_types
from safe_stepwise.methods.loop import OUT_OF_STEPS
from safe_stepwise.methods.searching import NO_EVIDENCE
from safe_stepwise.records import ANSWERED, FAILED
from safe_stepwise.store import published_tables
from safe_stepwise.store.tables import NOTHING, Table, percent
from safe_stepwise.taxonomy import category

_KINDS = ("prompt", "cached", "computed", "completion")
"""Of tokens."""
_ENDS = {OUT_OF_STEPS: "out of steps", NO_EVIDENCE: "no evidence found"}
"""What the loop's stop reasons are called."""


def cost_table(comparison: Comparison) -> Table:
    """Calls and tokens of each system by role, in all and a question."""
    names = comparison.names
    header = (comparison.answering, "method", "role", "calls / question", "prompt", "cached",
              "computed", "cached share, %", "completion", "prompt / question", "cached / question",
              "computed / question", "completion / question")  # fmt: skip
    table: Table = [header]
    for row in comparison.rows:
        for role, _, *cells in cost_cells(row):
            shown = [f"{c:,}" if isinstance(c, int) else c or NOTHING for c in cells]
            table.append([row.system.answering, names[row.system], role, *shown])
    return table


def cost_csv(comparison: Comparison) -> Table:
    """`cost_table` for machines."""
    header = (*comparison.columns, "questions", "role", "calls", "calls_per_question",
              "prompt_tokens", "cached_tokens", "computed_tokens", "cached_percent",
              "completion_tokens", *(f"{kind}_tokens_per_question" for kind in _KINDS))  # fmt: skip
    table: Table = [header]
    for row in comparison.rows:
        for cells in cost_cells(row):
            table.append([*comparison.described(row), row.loop.questions, *cells])
    return table


def cost_cells(row: Row) -> Iterable[list[object]]:
    """Of each role that was called, and of all: its name, calls, tokens, tokens a question."""
    loop = row.loop
    used = [role for role in row.players if loop.calls.get(role)]
    for name, roles in [*((role, [role]) for role in used), ("overall", used)]:
        calls = sum(loop.calls[role] for role in roles)
        tokens = [sum(getattr(loop, f"{kind}_tokens")[role] for role in roles) for kind in _KINDS]
        prompt, cached, computed, completion = tokens
        count = max(1, loop.questions)
        share = percent(cached / prompt) if prompt else ""
        each = [f"{n / count:.1f}" for n in tokens]
        calls_each = f"{calls / count:.2f}"
        yield [name, calls, calls_each, prompt, cached, computed, share, completion, *each]


def published_table(papers: Iterable[str]) -> Table:
    """The tokens that papers print; no row without papers."""
    header = ("published", "role", "total", "cached", "computed", "cached share, %")
    table: Table = [header]
    for row in published_tables.published().tokens:
        if row.paper in papers:
            numbers = (row.total_millions, row.cached_millions, row.computed_millions)
            of = f"{published_tables.PAPERS[row.paper]}, Table {row.table} (published)"
            table.append([of, row.role, *(f"{n:.1f}M" for n in numbers), row.cached_percent])
    return table


def ending_table(comparison: Comparison) -> Table:
    """How the questions of each system went and ended."""
    names, stops = comparison.names, _stops(comparison)
    table: Table = [
        (comparison.answering, "method", "questions", "steps / question",
         *(_ENDS.get(stop, stop) for stop in stops),
         "replies that are no step", "retries used up", "steps accepted unverified")
    ]  # fmt: skip
    for row in comparison.rows:
        loop = row.loop
        retries = "max_retries" in dict(row.system.options)
        table.append(
            [row.system.answering, names[row.system], loop.questions,
             f"{loop.steps_per_question:.2f}", *(loop.stop_reasons.get(stop, 0) for stop in stops),
             loop.malformed, loop.exhausted if retries else NOTHING, loop.unverified]
        )  # fmt: skip
    return table


def _stops(comparison: Comparison) -> list[str]:
    """Why questions ended, and may have: out of steps only where steps are limited."""
    options = {name for row in comparison.rows for name, _ in row.system.options}
    found = [stop for row in comparison.rows for stop in row.loop.stop_reasons]
    known = dict.fromkeys([*options & {OUT_OF_STEPS}, *found])
    return [ANSWERED, *(stop for stop in known if stop not in (ANSWERED, FAILED)), FAILED]


def error_type_csv(comparison: Comparison, rows: Sequence[Row]) -> Table:
    """Steps at fault of each system by error type."""
    table: Table = [(*comparison.columns, "error_type", "category", "steps", "percent")]
    for row in rows:
        found = row.loop.error_types
        total = sum(found.values())
        for name in error_types(found):
            count = found.get(name, 0)
            share = percent(count / total) if total else ""
            table.append([*comparison.described(row), name, category(name), count, share])
    return table


def error_position_csv(comparison: Comparison, rows: Sequence[Row]) -> Table:
    """Steps at fault of each system by their number."""
    table: Table = [(*comparison.columns, "position", "steps", "percent", "cumulative_percent")]
    for row in rows:
        found = row.loop.error_positions
        total, so_far = sum(found.values()), 0
        for position, count in sorted(found.items()):
            so_far += count
            shares = [percent(count / total), percent(so_far / total)]
            table.append([*comparison.described(row), position, count, *shares])
    return table


def sweep_csv(comparison: Comparison) -> Table:
    """Average scores in percent, and cost, of each K and N."""
    columns = [f"{metric}{bound}" for metric in METRICS for bound in ("", "_low", "_high")]
    table: Table = [(*comparison.columns, *columns, "calls_per_question", "computed_per_question")]
    for row in comparison.rows:
        loop = row.loop
        scores = [cell for metric in METRICS for cell in bounds(row.average[metric])]
        computed = sum(loop.computed_tokens.values()) / max(1, loop.questions)
        cost = [f"{loop.calls_per_question:.2f}", f"{computed:.1f}"]
        table.append([*comparison.described(row), *scores, *cost])
    return table
