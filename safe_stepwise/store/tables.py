"""Tables, and the pages that they stand on: rows and columns as Markdown, CSV, and as plain text that commands print.

A `Column` says what stands in it and in which form; what a row has none of is a dash, and nothing in CSV.
Pages are Jinja templates in one environment, that of cards, reports and HTML.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from safe_stepwise.store.names import SIMULATED, marked
from safe_stepwise.store.terminal import printable

if TYPE_CHECKING:
    from jinja2 import Environment

R = TypeVar("R")
NOTHING = "–"
"""What was not measured, or does not apply."""
Table = list[Sequence[object]]
"""The first row is the header."""
_NUMBER = re.compile(r"(?:[-+<] ?)?\d(?:\W|\d)*|–(?:\W|\d)*")
"""With margins, shares in brackets and units that are no words; a name may begin with a digit."""


def as_is(value: object) -> object:
    """The form of a value that is a text already, or a number whose form its writer decides on."""
    return value


def count(value: int) -> str:
    """A form: a whole number with its thousands apart.

    >>> count(2000)
    '2,000'
    """
    return f"{value:,}"


def percent(value: float, sign: str = "") -> str:
    """A form: a share in percent, to one decimal.

    >>> percent(0.7056), percent(-0.0001), percent(0.08, "+")
    ('70.6', '0.0', '+8.0')
    """
    return f"{round(100 * value, 1) + 0.0:{sign}.1f}"


signed = partial(percent, sign="+")
"""A form: a difference of shares, in points."""


def decimal(places: int, sign: str = "") -> Callable[[float], str]:
    """The form of a number to so many decimals.

    >>> decimal(3)(0.5), decimal(2, "+")(1)
    ('0.500', '+1.00')
    """
    return lambda value: f"{value:{sign}.{places}f}"


def p_value(p: float) -> str:
    """A form: a p-value to three decimals.

    >>> p_value(0.0312), p_value(0.0002)
    ('0.031', '<0.001')
    """
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def interval(estimate: tuple[float | None, Sequence[float] | None]) -> str:
    """A form: a share in percent and, where there is one, the interval around it.

    >>> interval((0.5, (0.4, 0.6))), interval((0.5, None)), interval((None, None))
    ('50.0 [40.0, 60.0]', '50.0', '–')
    """
    value, span = estimate
    spread = f" [{percent(span[0])}, {percent(span[1])}]" if span else ""
    return f"{shown(value, percent)}{spread}"


def shown(value: Any, form: Callable[[Any], object] = as_is, missing: str = NOTHING) -> object:
    """A value in its form; None is ``missing``."""
    return missing if value is None else form(value)


@dataclass(frozen=True)
class Column(Generic[R]):
    """One column of a table whose rows are of type ``R``: on pages if it has a title, in CSV if it has a key."""

    title: str
    value: Callable[[R], Any]
    form: Callable[[Any], object] = as_is
    key: str = ""


@dataclass(frozen=True)
class Sheet(Generic[R]):
    """A table with its rows, for a page and for CSV.

    >>> columns = (Column("model", lambda row: row[0], key="model"), Column("EM", lambda row: row[1], percent, "em"))
    >>> sheet = Sheet(columns, [("4B", 0.5), ("8B", None)])
    >>> print(sheet.markdown)
    | model | EM |
    | --- | ---: |
    | 4B | 50.0 |
    | 8B | – |
    >>> sheet.csv
    b'model,em\\n4B,50.0\\n8B,\\n'
    """

    columns: Sequence[Column[R]]
    rows: Sequence[R]

    @property
    def markdown(self) -> str:
        return markdown(self.table)

    @property
    def table(self) -> Table:
        return table_of((column for column in self.columns if column.title), self.rows)

    @property
    def csv(self) -> bytes:
        """Counts stand without their thousands apart; truth as other languages write it."""
        columns = [column for column in self.columns if column.key]
        cells = [[_for_machines(column.value(row), column.form) for column in columns] for row in self.rows]
        return csv_bytes([[column.key for column in columns], *cells])


def table_of(columns: Iterable[Column[R]], rows: Iterable[R], missing: str = NOTHING) -> Table:
    """The cells that columns make of rows, their titles first; for CSV ``missing`` is empty.

    >>> columns = [Column("of", lambda row: row[0]), Column("EM", lambda row: row[1], percent)]
    >>> table_of(columns, [("musique", 0.5), ("average", None)])
    [['of', 'EM'], ['musique', '50.0'], ['average', '–']]
    """
    columns = list(columns)
    cells = [[shown(column.value(row), column.form, missing) for column in columns] for row in rows]
    return [[column.title for column in columns], *cells]


def _for_machines(value: Any, form: Callable[[Any], object]) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return shown(value, as_is if form is count else form, "")


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
    rule = ["---:" if _is_numeric(column) else "---" for column in columns]
    lines = [[escaped(cell) for cell in header], rule, *([escaped(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def csv_bytes(table: Table) -> bytes:
    """A table as CSV: UTF-8, lines that end in a newline."""
    content = io.StringIO()
    csv.writer(content, lineterminator="\n").writerows(table)
    return content.getvalue().encode("utf-8", "backslashreplace")


def text_table(rows: Sequence[Sequence[object]]) -> str:
    """A table as aligned text, as commands print it; numbers to the right.

    >>> print(text_table([("split", "rows"), ("train", 2000)]))
    split   rows
    -----  -----
    train  2,000
    """
    texts = [[f"{c:,}" if isinstance(c, int) else printable(str(c)) for c in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    right = [isinstance(c, int | float) for c in rows[-1]]
    lines = [
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in texts
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


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


def escaped(value: object) -> str:
    """A value as Markdown shows it literally, on one line.

    >>> print(escaped("<b> of [a](x)\\nand|*b*"))
    \\<b> of \\[a\\](x) and\\|\\*b\\*
    """
    return re.sub(r"([\\|`*\[\]<&])", r"\\\1", " ".join(str(value).split()))


def mark(simulated: bool) -> str:
    """What stands behind a title of anything simulated.

    >>> mark(True)
    ' (simulated)'
    """
    return SIMULATED if simulated else ""


def _is_numeric(column: Sequence[object]) -> bool:
    return bool(column) and all(_NUMBER.fullmatch(str(cell)) for cell in column)


def fill(folder: Path, template: str, /, **values: Any) -> str:
    """The Markdown of a template in a folder; raises ``KeyError`` for a figure that it lacks."""
    from jinja2 import UndefinedError

    try:
        body = environment((folder,)).get_template(template).render(**values)
    except UndefinedError as error:
        raise KeyError(str(error)) from error
    body = re.sub(r"\n{3,}", "\n\n", body)  # what a block leaves that was not to be
    return f"{body.strip()}\n"


@cache
def environment(folders: tuple[Path, ...], is_html: bool = False) -> "Environment":
    """What reads the templates of some folders: HTML escapes values, in Markdown the filter ``escaped`` does."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(folders),
        undefined=StrictUndefined,
        trim_blocks=not is_html,
        lstrip_blocks=not is_html,
        keep_trailing_newline=not is_html,
        autoescape=is_html,
    )
    # The plus has what is undefined say its name.
    number = lambda value, form=",": f"{+value:{form}}"  # noqa: E731
    forms = {"shown": shown, "percent": percent, "p_value": p_value}
    made.filters |= {"cell": cell, "marked": marked, "escaped": escaped, "number": number, **forms}
    made.filters |= {"table": markdown, "text_table": text_table, "mark": mark}
    made.filters["printable"] = printable
    return made


_ESCAPED = {mark: f"\\{mark}" for mark in "\\|[]*"} | {"&": "&amp;", "<": "&lt;", "`": "'"}


def cell(value: object) -> str:
    r"""A value that cannot break a Markdown table (nor, unlike its source, carry markup).

    >>> cell("a|b\nc <i> [d](e)")
    'a\\|b c &lt;i> \\[d\\](e)'
    """
    return "".join(_ESCAPED.get(c, c) for c in line(value))


def line(value: object) -> str:
    r"""A value on one line, without control characters.

    >>> line("a\n---\n\x1bb")
    'a --- b'
    """
    text = " ".join(str(value).split())
    return "".join(c for c in text if c.isprintable())
