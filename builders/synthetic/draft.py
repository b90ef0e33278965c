"""A row under way: the hops it asks about, and its own copies of what it changes."""

from dataclasses import dataclass, field
from random import Random

from builders.synthetic.world import Article, Entity, Value, World, copy_of, order_of, start_year, text_of
from safe_stepwise.records import NoiseType

DATES = {"date of birth", "date of death", "publication date", "inception"}
KIN = {"spouse", "father", "mother", "child", "sibling"}


@dataclass(slots=True)
class Link:
    """One hop: what is annotated (``said``) and where it follows from (a link's index)."""

    head: Entity
    relation: str
    tail: Value
    said: str = ""
    after: int | None = None
    source: Entity | None = None


@dataclass(slots=True)
class Draft:
    """The row's plan, and what was changed for it: copies in ``altered``, ``beside`` the gold."""

    world: World
    rng: Random
    truth: NoiseType
    style: str
    kind: str
    links: list[Link]
    question: str = ""
    answer: str = ""
    aliases: tuple[str, ...] = ()
    gold: list[Entity] = field(default_factory=list)
    altered: dict[int, Entity] = field(default_factory=dict)
    beside: list[Entity] = field(default_factory=list)
    withheld: Link | None = None
    articles: dict[int, Article] = field(default_factory=dict)

    def alter(self, e: Entity) -> Entity:
        """The copy of ``e`` that this row's article is written from."""
        return self.altered.setdefault(e.key, copy_of(self.altered.get(e.key, e)))

    def article(self, e: Entity) -> Article:
        """The row's own article of an altered entity, else the world's."""
        if e.key not in self.articles:
            known = None if e.key in self.altered else self.world.articles.get(e.key)
            self.articles[e.key] = known or self.world.write(self.altered.get(e.key, e), self.rng)
        return self.articles[e.key]


def choose_gold(draft: Draft) -> None:
    """The articles that state the hops, in order."""
    for link in draft.links:
        source = link.source or link.head
        if source not in draft.gold:
            draft.gold.append(source)


def say(value: Value, as_demonym: bool) -> str:
    """How an annotation writes a value, a country as its demonym when asked."""
    if as_demonym and isinstance(value, Entity) and value.demonym:
        return value.demonym
    return text_of(value)


def label_of(e: Entity, style: str = "") -> str:
    """How a question names an entity, so that its name-alikes are excluded."""
    if e.kind in ("film", "song", "album", "book"):
        if any(mode == "title" for mode, _ in e.alikes):
            return f"the {start_year(e)} film {e.name}"
        return f"{e.kind} {e.name}" if style == "2wiki" else e.name
    return e.title if e.kind == "person" else e.name


def walk(start: Entity, path: list[str]) -> list[Link] | None:
    """The links along ``path``, or None where a fact is missing, several, or leads back."""
    links: list[Link] = []
    head: Value = start
    seen = {start.key}
    for n, relation in enumerate(path):
        if not isinstance(head, Entity):
            return None
        values = head.facts.get(relation, [])
        if len(values) != 1:
            return None
        tail = values[0]
        if isinstance(tail, Entity):
            if tail.key in seen:
                return None
            seen.add(tail.key)
        links.append(Link(head, relation, tail, text_of(tail), n - 1 if n else None))
        head = tail
    return links


def answer_chain(draft: Draft) -> Draft:
    """The draft with the end of its last hop as the answer."""
    last = draft.links[-1]
    adjective = last.relation in ("country of citizenship", "country of origin")
    as_demonym = adjective and draft.style != "musique" and draft.rng.random() < 0.4
    last.said = draft.answer = say(last.tail, as_demonym)
    draft.aliases = ()
    if isinstance(last.tail, Entity) and last.tail.demonym and draft.style == "musique":
        draft.aliases = (last.tail.demonym,)
    return draft


def winner(left: Value, right: Value, later: bool) -> int:
    """Which of two dates a comparison asks for: 0 for the left one, 1 for the right one."""
    return 0 if (order_of(left) < order_of(right)) != later else 1
