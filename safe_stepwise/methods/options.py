"""A method's options: a dataclass of plain values with defaults, and what of it is told."""

from dataclasses import dataclass, fields
from typing import Any

AS_PUBLISHED = "as published"
"""Key of an option's metadata: the papers' value, where that is not ours."""


@dataclass(frozen=True, slots=True)
class NoOptions:
    """The options of a method that has none."""


def option_values(options: Any) -> dict[str, Any]:
    """The options that are part of a run's identity, as JSON values by name; None is not told.

    >>> option_values(NoOptions())
    {}
    """
    values = {f.name: getattr(options, f.name) for f in fields(options) if f.compare}
    defaults = {f.name: f.default for f in fields(options) if AS_PUBLISHED in f.metadata}
    set_values = {name: value for name, value in values.items() if value is not None}
    return {n: value for n, value in set_values.items() if n not in defaults or value != defaults[n]}


def published_values(kind: type[Any]) -> dict[str, Any]:
    """Return the papers' choices that differ from ours, by the names of a method's options.

    >>> published_values(NoOptions)
    {}
    """
    return {f.name: f.metadata[AS_PUBLISHED] for f in fields(kind) if AS_PUBLISHED in f.metadata}
