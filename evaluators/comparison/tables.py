"""What the report's tables are made of: texts, names of systems, Markdown and CSV.

A table is its header and its rows. Percentages have one decimal.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from evaluators.comparison.systems import Comparison, Estimate, Metric, Row, System

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
    """A name for each system beside its generator: its method, and what else sets it apart."""
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


def bounds(estimate: Estimate | None) -> list[str]:
    """A value, its lower and its upper bound in percent; empty where nothing was measured."""
    if estimate is None:
        return ["", "", ""]
    return [percent(number) for number in (estimate.value, estimate.low, estimate.high)]
