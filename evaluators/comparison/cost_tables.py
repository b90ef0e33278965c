"""The tables of what systems did: costs (SAFE v1, Table 8), errors (Figures 3, 4), K × N sweep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from evaluators.comparison.systems import METRICS, Comparison, Row, System
from evaluators.comparison.tables import (
    NOTHING,
    SYSTEM_COLUMNS,
    Table,
    bounds,
    percent,
    system_cells,
    system_names,
)
from safe_stepwise.methods.running import GENERATOR, VERIFIER, LoopStatistics
from safe_stepwise.taxonomy import ERROR_TYPES, MISSING_EVIDENCE, category


def cost_table(comparison: Comparison, loops: Mapping[System, LoopStatistics]) -> Table:
    """Calls and tokens of each system by role, in all and a question."""
    names = system_names(comparison)
    header = ("generator", "method", "role", "calls / question", "prompt", "cached", "computed",
              "cached share, %", "completion", "prompt / question", "cached / question",
              "computed / question", "completion / question")  # fmt: skip
    table: Table = [header]
    for row in comparison.rows:
        for role, _, *cells in cost_cells(loops[row.system]):
            shown = [f"{c:,}" if isinstance(c, int) else c or NOTHING for c in cells]
            table.append([row.system.generator, names[row.system], role, *shown])
    return table


def cost_csv(comparison: Comparison, loops: Mapping[System, LoopStatistics]) -> Table:
    """`cost_table` for machines."""
    kinds = ("prompt", "cached", "computed", "completion")
    header = (*SYSTEM_COLUMNS, "questions", "role", "calls", "calls_per_question",
              "prompt_tokens", "cached_tokens", "computed_tokens", "cached_percent",
              "completion_tokens", *(f"{kind}_tokens_per_question" for kind in kinds))  # fmt: skip
    table: Table = [header]
    for row in comparison.rows:
        loop = loops[row.system]
        for cells in cost_cells(loop):
            table.append([*system_cells(row), loop.questions, *cells])
    return table


def cost_cells(loop: LoopStatistics) -> Iterable[list[object]]:
    """Of each role that was called, and of both: its name, calls, tokens, tokens a question."""
    used = [role for role in (GENERATOR, VERIFIER) if loop.calls.get(role)]
    for name, roles in [*((role, [role]) for role in used), ("overall", used)]:
        calls = sum(loop.calls[role] for role in roles)
        prompt, cached, computed, completion = (
            sum(tokens[role] for role in roles)
            for tokens in (
                loop.prompt_tokens,
                loop.cached_tokens,
                loop.computed_tokens,
                loop.completion_tokens,
            )
        )
        count = max(1, loop.questions)
        share = percent(cached / prompt) if prompt else ""
        each = [f"{n / count:.1f}" for n in (prompt, cached, computed, completion)]
        calls_each = f"{calls / count:.2f}"
        yield [name, calls, calls_each, prompt, cached, computed, share, completion, *each]


def ending_table(comparison: Comparison, loops: Mapping[System, LoopStatistics]) -> Table:
    """How the questions of each system went and ended."""
    names = system_names(comparison)
    table: Table = [
        ("generator", "method", "questions", "steps / question", "answered", "out of steps",
         "failed", "replies that are no step", "retries used up", "steps accepted unverified")
    ]  # fmt: skip
    for row in comparison.rows:
        loop = loops[row.system]
        stops = [loop.stop_reasons.get(stop, 0) for stop in ("answered", "max_steps", "failed")]
        table.append(
            [row.system.generator, names[row.system], loop.questions,
             f"{loop.steps_per_question:.2f}", *stops,
             loop.malformed, loop.exhausted, loop.unverified]
        )  # fmt: skip
    return table


def error_type_csv(rows: Sequence[Row], loops: Mapping[System, LoopStatistics]) -> Table:
    """Steps at fault of each system by error type."""
    table: Table = [(*SYSTEM_COLUMNS, "error_type", "category", "steps", "percent")]
    for row in rows:
        found = loops[row.system].error_types
        total = sum(found.values())
        for name in error_types(found):
            count = found.get(name, 0)
            share = percent(count / total) if total else ""
            table.append([*system_cells(row), name, category(name), count, share])
    return table


def error_position_csv(rows: Sequence[Row], loops: Mapping[System, LoopStatistics]) -> Table:
    """Steps at fault of each system by their number."""
    table: Table = [(*SYSTEM_COLUMNS, "position", "steps", "percent", "cumulative_percent")]
    for row in rows:
        found = loops[row.system].error_positions
        total, so_far = sum(found.values()), 0
        for position, count in sorted(found.items()):
            so_far += count
            shares = [percent(count / total), percent(so_far / total)]
            table.append([*system_cells(row), position, count, *shares])
    return table


def sweep_csv(comparison: Comparison, loops: Mapping[System, LoopStatistics]) -> Table:
    """Average scores in percent, and cost, of each K and N."""
    columns = [f"{metric}{bound}" for metric in METRICS for bound in ("", "_low", "_high")]
    table: Table = [(*SYSTEM_COLUMNS, *columns, "calls_per_question", "computed_per_question")]
    for row in comparison.rows:
        loop = loops[row.system]
        scores = [cell for metric in METRICS for cell in bounds(row.average[metric])]
        computed = sum(loop.computed_tokens.values()) / max(1, loop.questions)
        cost = [f"{loop.calls_per_question:.2f}", f"{computed:.1f}"]
        table.append([*system_cells(row), *scores, *cost])
    return table


def error_types(found: Iterable[str]) -> list[str]:
    """The taxonomy's ten, and `Missing Evidence` where it was found."""
    return [e.name for e in ERROR_TYPES] + [MISSING_EVIDENCE] * (MISSING_EVIDENCE in set(found))
