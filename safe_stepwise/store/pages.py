"""Pages from Jinja templates: the one environment of cards, reports and HTML."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, UndefinedError

from safe_stepwise.store import tables
from safe_stepwise.store.names import marked
from safe_stepwise.store.terminal import printable


def fill(folder: Path, template: str, /, **values: Any) -> str:
    """The Markdown of a template in a folder; raises ``KeyError`` for a figure that it lacks."""
    try:
        body = environment((folder,)).get_template(template).render(**values)
    except UndefinedError as error:
        raise KeyError(str(error)) from error
    body = re.sub(r"\n{3,}", "\n\n", body)  # what a block leaves that was not to be
    return f"{body.strip()}\n"


@cache
def environment(folders: tuple[Path, ...], is_html: bool = False) -> Environment:
    """What reads the templates of some folders: HTML escapes values, in Markdown the filter ``escaped`` does."""
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
    forms = {"shown": tables.shown, "percent": tables.percent, "p_value": tables.p_value}
    made.filters |= {"cell": cell, "marked": marked, "escaped": tables.escaped, "number": number, **forms}
    made.filters |= {"table": tables.markdown, "text_table": tables.text_table, "mark": tables.mark}
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
