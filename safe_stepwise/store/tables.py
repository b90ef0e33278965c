"""Renders tables as Markdown, CSV and the plain text that commands print, and fills the templates of pages.

A `Column` says which value of a row it shows, and in which form. A missing value is a dash, and empty in CSV. All
pages (cards, reports, HTML) are Jinja templates in one environment.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from safe_stepwise.store.names import marked
from safe_stepwise.store.terminal import printable

if TYPE_CHECKING:
    from jinja2 import Environment

R = TypeVar("R")
NOTHING = "–"
"""The cell of a value that was not measured, or does not apply."""
Table = list[Sequence[object]]
"""The first row is the header."""
_NUMBER = re.compile(r"(?:[-+<] ?)?\d(?:\W|\d)*|–(?:\W|\d)*")
"""A number with margins, shares in brackets and units that are no words; a name may begin with a digit."""


def as_is(value: object) -> object:
    """Keep a value: the form of texts, and of numbers whose form the table's writer decides."""
    return value


def count(value: int) -> str:
    """Format a whole number with commas between thousands.

    >>> count(2000)
    '2,000'
    """
    return f"{value:,}"


def percent(value: float, sign: str = "") -> str:
    """Format a share in percent, to one decimal.

    >>> percent(0.7056), percent(-0.0001), percent(0.08, "+")
    ('70.6', '0.0', '+8.0')
    """
    return f"{round(100 * value, 1) + 0.0:{sign}.1f}"


signed = partial(percent, sign="+")
"""Format a difference of shares in points, with its sign."""


def decimal(places: int, sign: str = "") -> Callable[[float], str]:
    """Make a form that rounds a number to so many decimals.

    >>> decimal(3)(0.5), decimal(2, "+")(1)
    ('0.500', '+1.00')
    """
    return lambda value: f"{value:{sign}.{places}f}"


def p_value(p: float) -> str:
    """Format a p-value to three decimals.

    >>> p_value(0.0312), p_value(0.0002)
    ('0.031', '<0.001')
    """
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def interval(estimate: tuple[float | None, Sequence[float] | None]) -> str:
    """Format a share in percent, with the interval around it if there is one.

    >>> interval((0.5, (0.4, 0.6))), interval((0.5, None)), interval((None, None))
    ('50.0 [40.0, 60.0]', '50.0', '–')
    """
    value, span = estimate
    spread = f" [{percent(span[0])}, {percent(span[1])}]" if span else ""
    return f"{format_cell(value, percent)}{spread}"


def format_cell(value: Any, form: Callable[[Any], object] = as_is, missing: str = NOTHING) -> object:
    """Format a value; None becomes ``missing``."""
    return missing if value is None else form(value)


@dataclass(frozen=True)
class Column(Generic[R]):
    """One column of a table with rows of type ``R``; it is on pages if it has a title, in CSV if it has a key."""

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
        """The table as CSV: counts without commas, booleans in lower case."""
        columns = [column for column in self.columns if column.key]
        cells = [[_csv_cell(column.value(row), column.form) for column in columns] for row in self.rows]
        return csv_bytes([[column.key for column in columns], *cells])


def table_of(columns: Iterable[Column[R]], rows: Iterable[R]) -> Table:
    """Make the cells of a table, the columns' titles first."""
    columns = list(columns)
    cells = [[format_cell(column.value(row), column.form) for column in columns] for row in rows]
    return [[column.title for column in columns], *cells]


def _csv_cell(value: Any, form: Callable[[Any], object]) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return format_cell(value, as_is if form is count else form, "")


def markdown(table: Table) -> str:
    """Render a table as Markdown; columns of numbers are aligned to the right.

    >>> print(markdown([("model", "EM"), ("a|b", "70.6")]))
    | model | EM |
    | --- | ---: |
    | a\\|b | 70.6 |
    """
    header, *rows = table
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    are_numbers = (bool(column) and all(_NUMBER.fullmatch(str(cell)) for cell in column) for column in columns)
    rule = ["---:" if is_numeric else "---" for is_numeric in are_numbers]
    lines = [[escaped(cell) for cell in header], rule, *([escaped(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def csv_bytes(table: Table) -> bytes:
    """Encode a table as CSV in UTF-8; lines end in a newline."""
    content = io.StringIO()
    csv.writer(content, lineterminator="\n").writerows(table)
    return content.getvalue().encode("utf-8", "backslashreplace")


def text_table(rows: Sequence[Sequence[object]]) -> str:
    """Render a table as aligned text for a terminal; numbers are aligned to the right.

    >>> print(text_table([("split", "rows"), ("train", 2000)]))
    split   rows
    -----  -----
    train  2,000
    """
    texts = [[f"{c:,}" if isinstance(c, int) else printable(str(c)) for c in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    align = [str.rjust if isinstance(c, int | float) else str.ljust for c in rows[-1]]
    lines = ["  ".join(f(c, w) for f, c, w in zip(align, row, widths, strict=True)).rstrip() for row in texts]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def escaped(value: object) -> str:
    """Escape a value so that Markdown shows it literally, on one line.

    >>> print(escaped("<b> of [a](x)\\nand|*b*"))
    \\<b> of \\[a\\](x) and\\|\\*b\\*
    """
    return re.sub(r"([\\|`*\[\]<&])", r"\\\1", " ".join(str(value).split()))


def fill(folder: Path, template: str, /, **values: Any) -> str:
    """Fill a folder's Markdown template with ``values``; raises ``KeyError`` for a value that is missing."""
    from jinja2 import UndefinedError

    try:
        body = environment((folder,)).get_template(template).render(**values)
    except UndefinedError as error:
        raise KeyError(str(error)) from error
    return re.sub(r"\n{3,}", "\n\n", body).strip() + "\n"  # blocks that render nothing leave empty lines


@cache
def environment(folders: tuple[Path, ...], is_html: bool = False) -> "Environment":
    """Make the Jinja environment of some folders; HTML escapes all values, Markdown only by ``escaped``."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    templates = Environment(
        loader=FileSystemLoader(folders),
        undefined=StrictUndefined,
        trim_blocks=not is_html,
        lstrip_blocks=not is_html,
        keep_trailing_newline=not is_html,
        autoescape=is_html,
    )
    # The plus makes an undefined value raise an error that names it.
    number = lambda value, form=",": f"{+value:{form}}"  # noqa: E731
    functions = (cell, marked, escaped, format_cell, percent, p_value, text_table, printable)
    templates.filters |= {"number": number, "table": markdown, "mark": partial(marked, "")}
    templates.filters |= {form.__name__: form for form in functions}
    return templates


_ESCAPED = {mark: f"\\{mark}" for mark in "\\|[]*"} | {"&": "&amp;", "<": "&lt;", "`": "'"}


def cell(value: object) -> str:
    r"""Escape a value so that it cannot break a Markdown table or carry markup.

    >>> cell("a|b\nc <i> [d](e)")
    'a\\|b c &lt;i> \\[d\\](e)'
    """
    return "".join(_ESCAPED.get(c, c) for c in line(value))


def line(value: object) -> str:
    r"""Put a value on one line, without control characters.

    >>> line("a\n---\n\x1bb")
    'a --- b'
    """
    return "".join(c for c in " ".join(str(value).split()) if c.isprintable())
