"""Entities with their facts, and how values are written and sorted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Day(NamedTuple):
    """A calendar day that is always written the same way."""

    year: int
    month: int
    day: int
    month_first: bool = False


@dataclass(eq=False, slots=True)
class Entity:
    """Something with an article.

    ``name`` is how others mention it, ``title`` heads its article, ``alikes`` are its namesakes
    with the way to tell them apart, ``since`` stands in for the first year where no fact tells it.
    """

    key: int
    kind: str
    name: str
    title: str
    facts: dict[str, list[Value]] = field(default_factory=dict)
    short: str = ""
    full: str = ""
    female: bool = False
    occupation: str = ""
    demonym: str = ""
    works: list[tuple[str, Entity]] = field(default_factory=list)
    alikes: list[tuple[str, Entity]] = field(default_factory=list)
    asides: list[str] = field(default_factory=list)
    incidents: list[str] = field(default_factory=list)
    since: int = 1920


Value = Entity | Day | str


MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


def one(rng: Random, options: Sequence[T]) -> T:
    """A uniform draw, several times faster than ``rng.choice``."""
    return options[int(rng.random() * len(options))]


def text_of(value: Value) -> str:
    """How a value is written in running text and in annotations.

    >>> text_of(Day(1901, 3, 12)), text_of(Day(1901, 3, 12, True)), text_of("1954")
    ('12 March 1901', 'March 12, 1901', '1954')
    """
    if isinstance(value, Day):
        month = MONTHS[value.month - 1]
        if value.month_first:
            return f"{month} {value.day}, {value.year}"
        return f"{value.day} {month} {value.year}"
    return value.name if isinstance(value, Entity) else value


def order_of(value: Value) -> tuple[int, int, int]:
    """A date or year as something that sorts."""
    if isinstance(value, Day):
        return value.year, value.month, value.day
    return int(text_of(value)), 0, 0


def start_year(e: Entity) -> int:
    """The year an entity came to be: birth, publication, founding."""
    for relation in ("date of birth", "publication date", "inception"):
        if relation in e.facts:
            return order_of(e.facts[relation][0])[0]
    return e.since


def copy_of(e: Entity) -> Entity:
    """A copy whose facts can be changed without touching the world."""
    return replace(
        e,
        facts=dict(e.facts),
        works=list(e.works),
        asides=list(e.asides),
        incidents=list(e.incidents),
    )
