"""Rows under way: questions of each kind, the hops that answer them, and a row's own copies of what it changes."""

from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import Any

from builders.synthetic.world import Article, Entity, Value, World, load, one, order_of, text_of, weighted
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
        return self.altered.setdefault(e.key, self.altered.get(e.key, e).copy())

    def article(self, e: Entity) -> Article:
        """The row's own article of an altered entity, else the world's."""
        if e.key not in self.articles:
            known = None if e.key in self.altered else self.world.articles.get(e.key)
            self.articles[e.key] = known or self.world.write(self.altered.get(e.key, e), self.rng)
        return self.articles[e.key]

    def choose_gold(self) -> None:
        """The articles that state the hops, in order."""
        self.gold = list(dict.fromkeys(link.source or link.head for link in self.links))

    def answer_chain(self) -> None:
        """The end of its last hop as the answer."""
        last = self.links[-1]
        adjective = last.relation in ("country of citizenship", "country of origin")
        as_demonym = adjective and self.style != "musique" and self.rng.random() < 0.4
        last.said = self.answer = say(last.tail, as_demonym)
        demonym = last.tail.demonym if isinstance(last.tail, Entity) and self.style == "musique" else ""
        self.aliases = (demonym,) if demonym else ()


def say(value: Value, as_demonym: bool) -> str:
    """How an annotation writes a value, a country as its demonym when asked."""
    if as_demonym and isinstance(value, Entity) and value.demonym:
        return value.demonym
    return text_of(value)


def label_of(e: Entity, style: str = "") -> str:
    """How a question names an entity, so that its name-alikes are excluded."""
    if e.kind in ("film", "song", "album", "book"):
        if any(mode == "title" for mode, _ in e.alikes):
            return f"the {e.start_year} film {e.name}"
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


def winner(left: Value, right: Value, later: bool) -> int:
    """Which of two dates a comparison asks for: 0 for the left one, 1 for the right one."""
    return 0 if (order_of(left) < order_of(right)) != later else 1


_WORDED: dict[str, Any] = load("questions.yaml")
"""How questions are worded, explained there."""
ASKED: dict[str, list[str]] = _WORDED["asked"]
BY: dict[str, str] = _WORDED["by"]
INFERENCES: dict[tuple[str, ...], str] = {tuple(each["path"]): each["question"] for each in _WORDED["inferences"]}
STYLES = ("2wiki", "hotpotqa", "musique")
_KIND_SHARES = {
    "2wiki": {"chain": 0.45, "comparison": 0.25, "bridge": 0.2, "intersection": 0.1},
    "hotpotqa": {"chain": 0.6, "comparison": 0.2, "bridge": 0.05, "intersection": 0.15},
    "musique": {"chain": 0.75, "comparison": 0.08, "bridge": 0.07, "intersection": 0.1},
}
_STARTS = ("film", "film", "film", "song", "album", "book", "person", "person", "person")


def chain(world: World, rng: Random, truth: NoiseType, style: str) -> Draft | None:
    """A chain of hops in a benchmark's style; None where what was drawn makes none."""
    hops = 2
    if style == "musique":
        hops = one(rng, (2, 2, 2, 3, 3, 4, 4))
    kinds = _STARTS if style == "2wiki" else (*_STARTS, "company", "label", "school", "award")
    start = one(rng, world.by_kind[one(rng, kinds)])
    path: list[str] = []
    head: Value = start
    for _ in range(hops):
        if not isinstance(head, Entity):
            return None
        relations = [r for r in head.facts if r in ASKED]
        if not relations:
            return None
        # Families are rare in the world and frequent in questions.
        relations += [r for r in relations if r in KIN] * 3
        path.append(one(rng, relations))
        head = head.facts[path[-1]][0]
    if style != "musique" and rng.random() < 0.15:
        start, path = one(rng, _grandparents(world))
    links = walk(start, path)
    # Borders go both ways, so a second border would lead back as well.
    if links is None or path.count("shares border with") > 1:
        return None
    inference = INFERENCES.get((path[0], path[1])) if hops == 2 else None
    kind = {"2wiki": "compositional", "hotpotqa": "bridge"}.get(style, f"{hops}hop")
    if inference and style == "2wiki":
        kind = "inference"
    draft = Draft(world, rng, truth, style, kind, links)
    draft.question = _chain_question(draft, path, label_of(start, style), inference)
    draft.answer_chain()
    return draft


@lru_cache(maxsize=1)
def _grandparents(world: World) -> list[tuple[Entity, list[str]]]:
    """Every person and pair of family relations that a 2Wiki inference can be made of."""
    return [
        (person, list(path))
        for person in world.by_kind["person"]
        for path in INFERENCES
        if path[0] in person.facts and walk(person, list(path))
    ]


def _chain_question(draft: Draft, path: list[str], label: str, inference: str | None) -> str:
    if inference and draft.style != "musique":
        return inference.format(x=label)
    noun = label
    for link, relation in zip(draft.links, path[:-1], strict=False):
        phrase = _WORDED["phrases"][relation]
        if link.head.kind == "school" and relation.startswith("located"):
            phrase = "the town where {x} is located"
        noun = phrase.format(x=noun)
    options = ASKED[path[-1]]
    if draft.style == "hotpotqa":
        options = options + _WORDED["asked_freely"].get(path[-1], [])
    # HotpotQA's annotators asked freely: every wording; 2Wiki's templates: the first mostly.
    plain = draft.style == "2wiki" and draft.rng.random() < 0.7
    text = (options[0] if plain else one(draft.rng, options)).format(x=noun)
    return text[0].upper() + text[1:]


def _comparison(world: World, rng: Random, truth: NoiseType, style: str) -> Draft | None:
    dated = rng.random() < 0.7
    asked = one(rng, _WORDED["compared"] if dated else _WORDED["same"])
    relation = asked["relation"]
    pool = world.by_kind[one(rng, asked["kinds"])]
    a = one(rng, pool)
    b = _partner(rng, a, relation, pool)
    if b is None or relation not in a.facts:
        return None
    # The year in a film's title would answer a question about its date.
    if relation == "publication date" and (a.alikes or b.alikes):
        return None
    left, right = a.facts[relation][0], b.facts[relation][0]
    links = [Link(a, relation, left, text_of(left)), Link(b, relation, right, text_of(right))]
    draft = Draft(world, rng, truth, style, "comparison", links)
    if not dated:
        draft.question = one(rng, asked["questions"]).format(a=label_of(a), b=label_of(b))
        as_demonym = relation == "country of citizenship" and rng.random() < 0.5
        for link in links:
            link.said = say(link.tail, as_demonym)
        draft.answer = "yes" if left is right else "no"
        return draft
    later = rng.random() < 0.45
    if order_of(left)[0] == order_of(right)[0]:
        return None
    template = one(rng, asked["later" if later else "earlier"])
    draft.question = template.format(a=label_of(a), b=label_of(b), k=a.kind)
    draft.answer = links[winner(left, right, later)].head.name
    return draft


def _partner(rng: Random, a: Entity, relation: str, pool: list[Entity]) -> Entity | None:
    """Another with the relation; of yes/no relations half of the time with the same value."""
    options = [e for e in pool if e is not a and relation in e.facts and e.name != a.name]
    if relation not in DATES and relation in a.facts and rng.random() < 0.45:
        options = [e for e in options if e.facts[relation] == a.facts[relation]]
    return one(rng, options) if options else None


def _bridge(world: World, rng: Random, truth: NoiseType, style: str) -> Draft | None:
    kind, maker = one(rng, (("film", "director"), ("film", "director"), ("song", "performer"), ("book", "author")))
    relation = one(rng, ("date of birth", "date of death", "country of citizenship"))
    first = walk(one(rng, world.by_kind[kind]), [maker, relation])
    second = walk(one(rng, world.by_kind[kind]), [maker, relation])
    if first is None or second is None or first[0].tail is second[0].tail:
        return None
    if first[0].head.name == second[0].head.name:
        return None
    first[1].after, second[1].after = 0, 1
    links = [first[0], second[0], first[1], second[1]]
    draft = Draft(world, rng, truth, style, "bridge_comparison", links)
    a, b = (label_of(link.head) for link in links[:2])
    left, right = links[2].tail, links[3].tail
    words = {"a": a, "b": b, "k": kind, "m": maker}
    if relation == "country of citizenship":
        if left is not right and rng.random() < 0.6:
            return None
        draft.question = one(rng, _WORDED["bridged_same"]).format(**words)
        draft.answer = "yes" if left is right else "no"
        return draft
    if order_of(left) == order_of(right):
        return None
    later = rng.random() < 0.45
    draft.question = one(rng, _WORDED["bridged"][relation]["later" if later else "earlier"]).format(**words)
    draft.answer = links[winner(left, right, later)].head.name
    return draft


def _intersection(world: World, rng: Random, truth: NoiseType, style: str) -> Draft | None:
    if rng.random() < 0.5:
        return _shared_film(world, rng, truth, style)
    relation = one(rng, tuple(_WORDED["shared"]))
    people = [p for p in world.by_kind["person"] if relation in p.facts]
    a = one(rng, people)
    others = [p for p in people if p is not a and p.facts[relation] == a.facts[relation]]
    others = [p for p in others if p.name != a.name]
    if not others:
        return None
    b, shared = one(rng, others), a.facts[relation][0]
    links = [Link(p, relation, shared, text_of(shared)) for p in (a, b)]
    draft = Draft(world, rng, truth, style, "intersection", links)
    draft.question = one(rng, _WORDED["shared"][relation]).format(a=label_of(a), b=label_of(b))
    draft.answer = text_of(shared)
    return draft


def _shared_film(world: World, rng: Random, truth: NoiseType, style: str) -> Draft | None:
    """A film by its director and another credit; the director's own article names it too."""
    film = one(rng, world.by_kind["film"])
    credits = [r for r in ("composer", "producer", "cast member") if r in film.facts]
    director = film.facts["director"][0]
    if not credits or not isinstance(director, Entity) or ("director", film) not in director.works:
        return None
    relation = one(rng, credits)
    other = film.facts[relation][0]
    pairs = [
        f for f in world.by_kind["film"] if f.facts["director"][0] is director and f.facts.get(relation) == [other]
    ]
    if len(pairs) > 1 or not isinstance(other, Entity):
        return None
    links = [Link(film, "director", director, director.name, source=director), Link(film, relation, other, other.name)]
    draft = Draft(world, rng, truth, style, "intersection", links)
    one_by, two_by = BY["director"], BY[relation]
    phrases = [one_by.format(x=label_of(director)), two_by.format(x=label_of(other))]
    if rng.random() < 0.5:
        phrases.reverse()
    opening = one(rng, ("Which film was", "What is the film that was"))
    if phrases[0].startswith("starring"):
        phrases.reverse()
    draft.question = f"{opening} {phrases[0]} and {phrases[1]}?"
    if phrases[1].startswith("starring"):
        draft.question = f"Which film {phrases[1]} was {phrases[0]}?"
    draft.answer = film.name
    return draft


_PLANS = {"chain": chain, "comparison": _comparison, "bridge": _bridge, "intersection": _intersection}


def plan(world: World, rng: Random, truth: NoiseType, style: str) -> Draft:
    """A sound draft in a benchmark's style (see ``STYLES``), its gold entities chosen."""
    make = _PLANS[weighted(rng, _KIND_SHARES[style])]
    while (draft := make(world, rng, truth, style)) is None:
        pass
    draft.choose_gold()
    return draft
