"""The world that one block of questions is about."""

from __future__ import annotations

from random import Random

from builders.synthetic.articles import Article
from builders.synthetic.entities import Day, Entity, Value, one
from builders.synthetic.names import Namer

KINDS = (
    "person",
    "film",
    "song",
    "album",
    "book",
    "town",
    "region",
    "country",
    "school",
    "company",
    "label",
    "award",
)


class World:
    """Entities and their articles. ``makers`` are the people of each trade that makes works."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.names = Namer(rng)
        self.by_kind: dict[str, list[Entity]] = {kind: [] for kind in KINDS}
        self.entities: list[Entity] = []
        self.cemeteries: list[Entity] = []
        self.makers: dict[str, list[Entity]] = {}
        self.articles: dict[int, Article] = {}
        self._count = 0

    def new(self, kind: str, name: str, listed: bool = True) -> Entity:
        """An entity with a key of its own; unlisted ones are never drawn."""
        self._count += 1
        e = Entity(self._count, kind, name, name)
        if listed:
            self.by_kind[kind].append(e)
            self.entities.append(e)
        return e

    def day(self, low: int, high: int) -> Day:
        """A day from the start of year ``low`` to the end of ``high``."""
        rng = self.rng
        year = low + int(rng.random() * (high - low + 1))
        month, day = 1 + int(rng.random() * 12), 1 + int(rng.random() * 28)
        return Day(year, month, day, rng.random() < 0.4)

    def maker(self, relation: str) -> Entity:
        """Someone of the trade that a relation such as ``director`` calls for."""
        return one(self.rng, self.makers[relation])

    def other(self, pool: list[Entity], than: Value) -> Entity:
        """A draw from ``pool`` that is not ``than``."""
        while (drawn := one(self.rng, pool)) is than:
            pass
        return drawn
