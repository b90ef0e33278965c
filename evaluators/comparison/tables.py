"""What the report's tables are made of: texts, Markdown and CSV.

A table is its header and its rows. Percentages have one decimal.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from evaluators.comparison.significance import Estimate
from safe_stepwise.errors import UserError
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.names import SIMULATED
from safe_stepwise.taxonomy import ERROR_TYPES, MISSING_EVIDENCE

AVERAGE = "average"
EVERY = "Total average"
"""Who answers in the mean over all who answer (SAFE v1, Table 3)."""
EARLY = 3
"""The steps that the papers call early (Figure 4)."""
NOTHING = "–"

Metric = Literal["exact_match", "f1", "accuracy"]
METRIC_NAMES: dict[Metric, str] = {"exact_match": "EM", "f1": "F1", "accuracy": "Acc"}
METRICS = tuple(METRIC_NAMES)

_NUMBER = re.compile(r"(?:[-+<] ?)?\d(?:\W|\d)*|–(?:\W|\d)*")
"""With margins, shares in brackets and units that are no words; a name may begin with a digit."""
Table = list[Sequence[object]]
"""The first row is the header."""


def markdown(table: Table) -> str:
    """A table as Markdown; columns of numbers stand to the right.

    >>> print(markdown([("model", "EM"), ("a|b", "70.6")]))
    | model | EM |
    | --- | ---: |
    | a\\|b | 70.6 |
    >>> print(markdown([("of", "EM", "Δ"), ("2wiki", "70.6 ± 1.2", "–"), ("4B", "< 1", "+1 (2%)")]))
    | of | EM | Δ |
    | --- | ---: | ---: |
    | 2wiki | 70.6 ± 1.2 | – |
    | 4B | \\< 1 | +1 (2%) |
    """
    header, *rows = table
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    right = [bool(c) and all(_NUMBER.fullmatch(str(v)) for v in c) for c in columns]
    rule = ["---:" if to_right else "---" for to_right in right]
    lines = [[escaped(c) for c in header], rule, *([escaped(c) for c in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def parted(table: Table, fixed: int, widths: Iterable[int]) -> list[Table]:
    """A wide table as several: each has the first ``fixed`` columns, and the next so many others.

    >>> parted([("a", "b", "c", "d"), (1, 2, 3, 4)], 1, (2, 1))
    [[('a', 'b', 'c'), (1, 2, 3)], [('a', 'd'), (1, 4)]]
    """
    parts: list[Table] = []
    start = fixed
    for width in widths:
        end = start + width
        parts.append([(*row[:fixed], *row[start:end]) for row in table])
        start = end
    return parts


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


def mark(simulated: bool) -> str:
    """What stands behind a title of anything simulated.

    >>> mark(True)
    ' (simulated)'
    """
    return SIMULATED if simulated else ""


def bounds(estimate: Estimate | None) -> list[str]:
    """A value, its lower and its upper bound in percent; empty where nothing was measured."""
    if estimate is None:
        return ["", "", ""]
    return [percent(number) for number in (estimate.value, estimate.low, estimate.high)]


def error_types(found: Iterable[str]) -> list[str]:
    """The taxonomy's ten, and `Missing Evidence` where it was found."""
    return [e.name for e in ERROR_TYPES] + [MISSING_EVIDENCE] * (MISSING_EVIDENCE in set(found))


def write_files(folder: Path, names: Iterable[str], files: Mapping[str, bytes]) -> None:
    """Write ``files`` and remove what else of ``names`` is there; ``UserError`` if it can't be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            if name in files:
                write_atomically(folder / name, files[name])
            else:
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror}); choose another --output") from None
