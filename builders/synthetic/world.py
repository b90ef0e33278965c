"""Define the fictional world: its entities and facts, and how names and values are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeVar

from safe_stepwise.language import text as language
from safe_stepwise.store.packaged import read_yaml

T = TypeVar("T")


def load(file: str | Path) -> Any:
    """Read a YAML file, given by its path or by its name in this folder."""
    return read_yaml(Path(__file__).parent / file)


WORDS: dict[str, Any] = {
    key: words.split() if isinstance(words, str) else words for key, words in load("world.yaml").items()
}
PLACE = "located in the administrative territorial entity"
NAME = "synthetic"
"""The benchmark's name."""


class Day(NamedTuple):
    """A calendar day that is always written the same way."""

    year: int
    month: int
    day: int
    month_first: bool = False


@dataclass(eq=False, slots=True)
class Entity:
    """An entity with an article of its own, whose title is ``title``; other articles mention it by ``name``.

    ``works`` are works by it, each with its relation. ``alikes`` are its namesakes, each with the way to tell them
    apart. ``asides`` and ``incidents`` are sentences beside its facts. ``since``: its first year if no fact gives one.
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
    asides: list[Remark] = field(default_factory=list)
    incidents: list[Remark] = field(default_factory=list)
    since: int = 1920

    @property
    def start_year(self) -> int:
        """The year of its birth, publication or founding."""
        for relation in ("date of birth", "publication date", "inception"):
            if relation in self.facts:
                return order_of(self.facts[relation][0])[0]
        return self.since

    def copy(self) -> Entity:
        """Return a copy whose facts can be changed without touching the world."""
        works, asides, incidents = list(self.works), list(self.asides), list(self.incidents)
        return replace(self, facts=dict(self.facts), works=works, asides=asides, incidents=incidents)


Value = Entity | Day | str
Remark = tuple[str, dict[str, Entity]]
"""Key of a writer's wordings, and the entities for their placeholders."""


@dataclass(frozen=True, slots=True)
class Article:
    """An entity's text; ``states`` maps (head's key, relation) to the number of the sentence that states it."""

    title: str
    sentences: tuple[str, ...]
    states: dict[tuple[int, str], int]
    mentions: frozenset[int]


KINDS = ("person", "film", "song", "album", "book", "town", "region", "country", "school", "company", "label", "award")
_OPEN = tuple(o + v for o in WORDS["onsets"] for v in WORDS["vowels"])
_CLOSED = tuple(o + v + c for o in WORDS["onsets"] for v in WORDS["vowels"][:8] for c in WORDS["codas"])
_PLAIN_OPEN = tuple(o + v for o in "bdgklmnprst" for v in "aeio")
_PLAIN_CLOSED = tuple(syllable + c for syllable in _PLAIN_OPEN for c in "lnrs")
MONTHS = [month.title() for month in language.MONTHS]


def pick(rng: Random, options: Sequence[T]) -> T:
    """Draw an option uniformly; several times faster than ``rng.choice``."""
    return options[int(rng.random() * len(options))]


def pick_weighted(rng: Random, shares: Mapping[T, float]) -> T:
    """Draw a name by shares that sum to 1; a rounding error goes to the last."""
    draw = rng.random()
    for name, share in shares.items():
        draw -= share
        if draw < 0:
            return name
    return name


def text_of(value: Value) -> str:
    """Render a value as running text and annotations write it.

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
    """Return the sort key of a date or year: (year, month, day)."""
    if isinstance(value, Day):
        return value.year, value.month, value.day
    return int(text_of(value)), 0, 0


class Namer:
    """Invents names of ``allowed`` words, without repeats; ``plain`` names have two syllables, and so few tokens."""

    def __init__(self, rng: Random, allowed: Callable[[str], bool] = lambda word: True, plain: bool = False) -> None:
        self.rng = rng
        self.allowed = allowed
        self.plain = plain
        self.used: set[str] = set()

    def word(self, endings: Sequence[str], long: bool = False) -> str:
        while True:
            rng = self.rng
            if self.plain:
                word = (pick(rng, _PLAIN_OPEN) + pick(rng, _PLAIN_CLOSED)).capitalize()
            else:
                stem = pick(rng, _OPEN) + pick(rng, _CLOSED) if long else pick(rng, _CLOSED)
                word = (stem + pick(rng, endings)).capitalize()
            # Two words with the same first half would be one word for stem matching.
            if len(word) > 4 and word[:5] not in self.used and self.allowed(word):
                self.used.add(word[:5])
                return word

    def given_name(self, female: bool) -> str:
        if self.plain:
            return self.word(())
        while True:
            name: str = pick(self.rng, _CLOSED) + pick(self.rng, WORDS["female" if female else "male"])
            if self.allowed(name.capitalize()):
                return name.capitalize()

    def title(self, patterns: Sequence[str]) -> str:
        pattern = pick(self.rng, patterns)
        suffix = self.word(("",), long=True) if "{b}" in pattern else ""
        return pattern.format(a=self.word(("", "a", "o"), long=True), b=suffix, n=pick(self.rng, WORDS["nouns"]))


class World:
    """A world's entities and articles, which ``write`` writes; ``makers`` are people by relation, as ``director``."""

    def __init__(self, rng: Random, write: Callable[[Entity, Random], Article], names: Namer | None = None) -> None:
        self.rng = rng
        self.write = write
        self.names = names or Namer(rng)
        self.by_kind: dict[str, list[Entity]] = {kind: [] for kind in KINDS}
        self.entities: list[Entity] = []
        self.cemeteries: list[Entity] = []
        self.makers: dict[str, list[Entity]] = {}
        self.articles: dict[int, Article] = {}
        self._count = 0

    def add(self, kind: str, name: str, listed: bool = True) -> Entity:
        """Add an entity with a new key; an unlisted one is never drawn."""
        self._count += 1
        e = Entity(self._count, kind, name, name)
        if listed:
            self.by_kind[kind].append(e)
            self.entities.append(e)
        return e

    def day(self, low: int, high: int) -> Day:
        """Draw a day from the start of year ``low`` to the end of ``high``."""
        rng = self.rng
        year = low + int(rng.random() * (high - low + 1))
        month, day = 1 + int(rng.random() * 12), 1 + int(rng.random() * 28)
        return Day(year, month, day, rng.random() < 0.4)

    def maker(self, relation: str) -> Entity:
        """Draw a person of the trade that a relation, such as ``director``, needs."""
        return pick(self.rng, self.makers[relation])
