"""Texts that commands print, each a template beside the module that fills it."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from safe_stepwise.store.tables import table


def fill(template: Path, **values: Any) -> str:
    """The text of a template, which has tables, and ``n`` and ``percent`` as forms of numbers."""
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["n"] = lambda number: f"{number:,}"
    environment.filters["percent"] = lambda share: f"{share:.1%}"
    environment.globals["table"] = table
    return environment.from_string(template.read_text(encoding="utf-8")).render(**values)
