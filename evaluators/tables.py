"""The report's tables: what they say, as Markdown and as CSV.

A table is its header and its rows of texts. Percentages have one decimal.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence

from evaluators.comparison import (
    METRICS,
    Comparison,
    Difference,
    Estimate,
    Estimates,
    Metric,
    Row,
    System,
)
from safe_stepwise.running import GENERATOR, VERIFIER, LoopStatistics
from safe_stepwise.taxonomy import ERROR_TYPES, MISSING_EVIDENCE, category

METHOD_NAMES = {
    "no_verification": "No verification",
    "self_verification": "Self-verification",
    "safe": "SAFE",
}
METRIC_NAMES: dict[Metric, str] = {"exact_match": "EM", "f1": "F1", "accuracy": "Acc"}
AVERAGE = "average"
SYSTEM_COLUMNS = ("generator", "verifier", "method", "max_steps", "max_retries", "simulated")
NOTHING = "–"

Table = list[Sequence[object]]
"""The first row is the header."""


def markdown(table: Table) -> str:
    """A table as Markdown; what looks like a number stands to the right.

    >>> print(markdown([("model", "EM"), ("a|b", "70.6")]))
    | model | EM |
    | --- | ---: |
    | a\\|b | 70.6 |
    """
    header, *rows = table
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    right = [bool(c) and all(re.match(r"[-+<]?\d|–", str(v)) for v in c) for c in columns]
    rule = ["---:" if to_right else "---" for to_right in right]
    lines = [[escaped(c) for c in header], rule, *([escaped(c) for c in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escaped(text: object) -> str:
    """A text as Markdown shows it literally, on one line.

    >>> print(escaped("<b> of [a](x)\\nand|*b*"))
    \\<b> of \\[a\\](x) and\\|\\*b\\*
    """
    return re.sub(r"([\\|`*\[\]<&])", r"\\\1", " ".join(str(text).split()))


def csv_bytes(table: Table) -> bytes:
    """A table as CSV: UTF-8, lines that end in a newline."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table)
    return text.getvalue().encode("utf-8", "backslashreplace")


def percent(value: float, sign: str = "") -> str:
    """A share in percent.

    >>> percent(0.7056), percent(-0.0001), percent(0.08, "+")
    ('70.6', '0.0', '+8.0')
    """
    return f"{round(100 * value, 1) + 0.0:{sign}.1f}"


def p_text(p: float) -> str:
    """A p-value to three decimals.

    >>> p_text(0.0312), p_text(0.0002)
    ('0.031', '<0.001')
    """
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def system_names(comparison: Comparison) -> dict[System, str]:
    """A name for each system, without its generator: the method, and whatever else sets it apart."""
    systems = [row.system for row in comparison.rows]
    limits = {(s.max_steps, s.max_retries) for s in systems}
    verifiers = {s.verifier for s in systems if s.method == "safe"}
    names = {}
    for row in comparison.rows:
        s = row.system
        name = METHOD_NAMES.get(s.method, s.method)
        if s.method == "safe" and len(verifiers) > 1:
            name += f" with {s.verifier}"
        if len(limits) > 1:
            name += f", K={s.max_steps}, N={s.max_retries}"
        names[s] = name + mark(row.simulated)
    return names


def mark(simulated: bool) -> str:
    """What stands behind the name of anything simulated.

    >>> mark(True)
    ' (simulated)'
    """
    return " (simulated)" if simulated else ""


def system_cells(row: Row) -> list[object]:
    """What a system is, for `SYSTEM_COLUMNS`."""
    s = row.system
    simulated = "true" if row.simulated else "false"
    return [s.generator, s.verifier, s.method, s.max_steps, s.max_retries, simulated]


# Scores (SAFE v1, Table 3)


def score_table(comparison: Comparison) -> Table:
    """EM, F1 and accuracy with their margins; under each SAFE what it gains."""
    names = system_names(comparison)
    table: Table = [("generator", "method", *_score_header(comparison))]
    for row in comparison.rows:
        scores = [_with_margin(e) for _, _, e in _scores(comparison, row)]
        table.append([row.system.generator, names[row.system], *scores])
        if row.system.method == "safe":
            gains = _gains(comparison, row)
            name = f"Δ {names[row.system]} {over(comparison, row.system)}"
            cells = [_with_margin(g.estimate if g else None, "+") for g in gains]
            table.append([row.system.generator, name, *cells])
    return table


def interval_table(comparison: Comparison) -> Table:
    """The 95% confidence intervals of `score_table`."""
    names = system_names(comparison)
    table: Table = [("generator", "method", *_score_header(comparison))]
    for row in comparison.rows:
        cells = [_interval(e) for _, _, e in _scores(comparison, row)]
        table.append([row.system.generator, names[row.system], *cells])
    return table


def test_table(comparison: Comparison) -> Table:
    """Each pair of systems in each benchmark: difference, interval, p, Holm's p."""
    names = system_names(comparison)
    tested = {(d.first, d.second, d.benchmark, d.metric): d for d in comparison.differences}
    places = dict.fromkeys((d.first, d.second, d.benchmark) for d in comparison.differences)
    header = ["generator", "difference", "benchmark", "pairs", "unpaired"]
    for metric in METRICS:
        name = METRIC_NAMES[metric]
        header += [f"Δ {name}", "95% CI", f"p ({name})", "p, Holm"]
    table: Table = [header]
    for first, second, benchmark in places:
        found = [tested.get((first, second, benchmark, metric)) for metric in METRICS]
        known = next(d for d in found if d)  # that of EM, of all questions
        what = f"{names[first]} − {names[second]}"
        cells: list[object] = [
            first.generator, what, benchmark or AVERAGE, known.pairs, known.unpaired,
        ]
        for d in found:
            cells += _test_cells(d) if d else [NOTHING] * 4
        table.append(cells)
    return table


def score_csv(comparison: Comparison) -> Table:
    """`score_table` for machines: values in percent, then intervals, then counts."""
    places = [*comparison.benchmarks, AVERAGE]
    columns = [f"{place}_{metric}" for place in places for metric in METRICS]
    bounds = [f"{column}_{bound}" for column in columns for bound in ("low", "high")]
    counted = ("questions", "scored", "unscored", "failed")
    counts = [f"{name}_{count}" for name in comparison.benchmarks for count in counted]
    table: Table = [(*SYSTEM_COLUMNS, "row", *columns, *bounds, *counts)]
    for row in comparison.rows:
        estimates = [e for _, _, e in _scores(comparison, row)]
        cells = [row.cells.get(name) for name in comparison.benchmarks]
        numbers = [getattr(cell, count) if cell else 0 for cell in cells for count in counted]
        table.append([*system_cells(row), "score", *_values(estimates), *numbers])
        if row.system.method == "safe":
            gains = [gain.estimate if gain else None for gain in _gains(comparison, row)]
            name = f"delta {over(comparison, row.system)}"
            table.append([*system_cells(row), name, *_values(gains), *[""] * len(counts)])
    return table


def test_csv(comparison: Comparison) -> Table:
    """All differences for machines, in percentage points."""
    second = [f"than_{column}" for column in ("verifier", "method")]
    table: Table = [
        (*SYSTEM_COLUMNS, *second, "benchmark", "metric", "pairs", "unpaired", "delta", "low",
         "high", "test", "p", "p_holm")
    ]  # fmt: skip
    rows = {row.system: row for row in comparison.rows}
    for d in comparison.differences:
        of = [*system_cells(rows[d.first])[:-1], "true" if d.simulated else "false"]
        other = [d.second.verifier, d.second.method]
        place = [d.benchmark or AVERAGE, d.metric, d.pairs, d.unpaired]
        table.append([*of, *other, *place, *_values([d.estimate]), d.test, d.p, d.p_holm])
    return table


def over(comparison: Comparison, system: System) -> str:
    """Which baseline each measure's gain is over."""
    by_baseline: dict[str, list[str]] = {}
    for metric in METRICS:
        baseline = comparison.better_baseline(system, metric)
        if baseline:
            name = METHOD_NAMES[baseline.method]
            by_baseline.setdefault(name, []).append(METRIC_NAMES[metric])
    if not by_baseline:
        return "over no baseline"
    if len(by_baseline) == 1:
        return f"over {next(iter(by_baseline))}"
    return "over " + ", ".join(f"{b} ({', '.join(m)})" for b, m in by_baseline.items())


# What it cost (SAFE v1, Table 8)


def cost_table(comparison: Comparison, loops: Mapping[System, LoopStatistics]) -> Table:
    """Calls and tokens of each system by role, in all and a question."""
    names = system_names(comparison)
    header = ("generator", "method", "role", "calls / question", "prompt", "cached", "computed",
              "cached share, %", "completion", "prompt / question", "cached / question",
              "computed / question", "completion / question")  # fmt: skip
    table: Table = [header]
    for row in comparison.rows:
        for role, _, *cells in cost_cells(loops[row.system]):
            shown = [f"{c:,}" if isinstance(c, int) else c for c in cells]
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
        share = percent(cached / prompt) if prompt else NOTHING
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


# Errors (SAFE v1, Figures 3 and 4) and the sweep (Figures 2 and 10)


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
    bounds = [f"{metric}{bound}" for metric in METRICS for bound in ("", "_low", "_high")]
    table: Table = [(*SYSTEM_COLUMNS, *bounds, "calls_per_question", "computed_per_question")]
    for row in comparison.rows:
        loop = loops[row.system]
        scores = [cell for metric in METRICS for cell in _bounds(row.average[metric])]
        computed = sum(loop.computed_tokens.values()) / max(1, loop.questions)
        cost = [f"{loop.calls_per_question:.2f}", f"{computed:.1f}"]
        table.append([*system_cells(row), *scores, *cost])
    return table


def error_types(found: Iterable[str]) -> list[str]:
    """The taxonomy's ten, and `Missing Evidence` where it was found."""
    return [e.name for e in ERROR_TYPES] + [MISSING_EVIDENCE] * (MISSING_EVIDENCE in set(found))


def _score_header(comparison: Comparison) -> list[str]:
    places = [*comparison.benchmarks, AVERAGE]
    return [f"{place} {METRIC_NAMES[metric]}" for place in places for metric in METRICS]


def _scores(comparison: Comparison, row: Row) -> list[tuple[str, Metric, Estimate | None]]:
    found: list[tuple[str, Metric, Estimate | None]] = []
    for name in (*comparison.benchmarks, AVERAGE):
        estimates: Estimates | None = row.average
        if name in comparison.benchmarks:
            estimates = row.cells[name].estimates if name in row.cells else None
        found += [(name, m, estimates[m] if estimates else None) for m in METRICS]
    return found


def _gains(comparison: Comparison, row: Row) -> list[Difference | None]:
    better = {metric: comparison.better_baseline(row.system, metric) for metric in METRICS}
    return [
        comparison.difference(row.system, baseline, place, metric) if baseline else None
        for place in (*comparison.benchmarks, None)
        for metric, baseline in better.items()
    ]


def _with_margin(estimate: Estimate | None, sign: str = "") -> str:
    if estimate is None:
        return NOTHING
    return f"{percent(estimate.value, sign)} ±{percent((estimate.high - estimate.low) / 2)}"


def _interval(estimate: Estimate | None, sign: str = "") -> str:
    if estimate is None:
        return NOTHING
    return f"{percent(estimate.low, sign)} to {percent(estimate.high, sign)}"


def _test_cells(d: Difference) -> list[object]:
    value = percent(d.estimate.value, "+")
    return [value, _interval(d.estimate, "+"), p_text(d.p), p_text(d.p_holm)]


def _bounds(estimate: Estimate | None) -> list[str]:
    if estimate is None:
        return ["", "", ""]
    return [percent(number) for number in (estimate.value, estimate.low, estimate.high)]


def _values(estimates: Sequence[Estimate | None]) -> list[str]:
    """All values, then all bounds."""
    found = [_bounds(estimate) for estimate in estimates]
    return [value for value, *_ in found] + [b for _, *bounds in found for b in bounds]
