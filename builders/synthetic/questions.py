"""Drafts rows: questions of each kind, the hops that answer them, and copies of the entities that a row changes."""

from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import Any

from builders.synthetic.world import Article, Entity, Value, World, load, order_of, pick, pick_weighted, text_of
from safe_stepwise.records import NoiseType

_WORDED: dict[str, Any] = load("questions.yaml")
"""Wordings of questions; the file explains them."""
GROUPS: dict[str, frozenset[str]] = {name: frozenset(relations) for name, relations in _WORDED["groups"].items()}
"""Groups of relations by name."""
DATES, KIN = GROUPS["dates"], GROUPS["kin"]


@dataclass(slots=True)
class Link:
    """One hop: ``annotated`` is its tail as the annotation writes it, ``after`` the index of the hop before it."""

    head: Entity
    relation: str
    tail: Value
    annotated: str = ""
    after: int | None = None
    source: Entity | None = None


@dataclass(slots=True)
class Draft:
    """The plan of a row: its hops, question and answer, the entities altered for it, and passages beside the gold."""

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
        """Return the copy of ``e`` from which this row's article is written."""
        return self.altered.setdefault(e.key, self.altered.get(e.key, e).copy())

    def article(self, e: Entity) -> Article:
        """Return the article of an entity: this row's if the entity is altered, else the world's."""
        if e.key not in self.articles:
            article = None if e.key in self.altered else self.world.articles.get(e.key)
            self.articles[e.key] = article or self.world.write(self.altered.get(e.key, e), self.rng)
        return self.articles[e.key]

    def choose_gold(self) -> None:
        """Set the gold entities: those whose articles state the hops, in order."""
        self.gold = list(dict.fromkeys(link.source or link.head for link in self.links))

    def answer_chain(self) -> None:
        """Set the end of the last hop as the answer."""
        last = self.links[-1]
        adjective = last.relation in ("country of citizenship", "country of origin")
        as_demonym = adjective and self.style != "musique" and self.rng.random() < 0.4
        last.annotated = self.answer = render_value(last.tail, as_demonym)
        demonym = last.tail.demonym if isinstance(last.tail, Entity) and self.style == "musique" else ""
        self.aliases = (demonym,) if demonym else ()


def render_value(value: Value, as_demonym: bool) -> str:
    """Render a value as an annotation writes it; a country as its demonym, if ``as_demonym``."""
    if as_demonym and isinstance(value, Entity) and value.demonym:
        return value.demonym
    return text_of(value)


def label_of(e: Entity, style: str = "") -> str:
    """Render an entity as a question names it, so that its namesakes are excluded."""
    if e.kind in ("film", "song", "album", "book"):
        if any(mode == "title" for mode, _ in e.alikes):
            return f"the {e.start_year} film {e.name}"
        return f"{e.kind} {e.name}" if style == "2wiki" else e.name
    return e.title if e.kind == "person" else e.name


def walk(start: Entity, path: list[str]) -> list[Link] | None:
    """Follow ``path`` from an entity; return None if a fact is missing, has several values, or leads back."""
    links: list[Link] = []
    head: Value = start
    visited = {start.key}
    for n, relation in enumerate(path):
        if not isinstance(head, Entity):
            return None
        values = head.facts.get(relation, [])
        if len(values) != 1:
            return None
        tail = values[0]
        if isinstance(tail, Entity):
            if tail.key in visited:
                return None
            visited.add(tail.key)
        links.append(Link(head, relation, tail, text_of(tail), n - 1 if n else None))
        head = tail
    return links


def winner(a: Value, b: Value, later: bool) -> int:
    """Return the index (0 or 1) of the date that a comparison asks for: the earlier one, or the later one."""
    return 0 if (order_of(a) < order_of(b)) != later else 1


QUESTIONS: dict[str, list[str]] = _WORDED["asked"]
CREDITS: dict[str, str] = _WORDED["by"]
INFERENCES: dict[tuple[str, ...], str] = {tuple(entry["path"]): entry["question"] for entry in _WORDED["inferences"]}
STYLES = ("2wiki", "hotpotqa", "musique")
_KIND_SHARES: dict[str, dict[str, float]] = _WORDED["kind_shares"]
_STARTS = ("film", "film", "film", "song", "album", "book", "person", "person", "person")


def chain(world: World, rng: Random, truth: NoiseType, style: str) -> Draft | None:
    """Draft a chain of hops in a benchmark's style; return None if the draw makes no chain."""
    hops = 2
    if style == "musique":
        hops = pick(rng, (2, 2, 2, 3, 3, 4, 4))
    kinds = _STARTS if style == "2wiki" else (*_STARTS, "company", "label", "school", "award")
    start = pick(rng, world.by_kind[pick(rng, kinds)])
    path: list[str] = []
    head: Value = start
    for _ in range(hops):
        if not isinstance(head, Entity):
            return None
        relations = [r for r in head.facts if r in QUESTIONS]
        if not relations:
            return None
        # Families are rare in the world and frequent in questions.
        relations += [r for r in relations if r in KIN] * 3
        path.append(pick(rng, relations))
        head = head.facts[path[-1]][0]
    if style != "musique" and rng.random() < 0.15:
        start, path = pick(rng, _grandparents(world))
    links = walk(start, path)
    # Borders go both ways, so a second border would lead back as well.
    if links is None or path.count("shares border with") > 1:
        return None
    inference = INFERENCES.get((path[0], path[1])) if hops == 2 else None
    kind = {"2wiki": "compositional", "hotpotqa": "bridge"}.get(style, f"{hops}hop")
    if inference and style == "2wiki":
        kind = "inference"
    draft = Draft(world, rng, truth, style, kind, links)
    draft.question = _word_chain(draft, path, label_of(start, style), inference)
    draft.answer_chain()
    return draft


@lru_cache(maxsize=1)
def _grandparents(world: World) -> list[tuple[Entity, list[str]]]:
    """Return every person and pair of family relations that can make a 2Wiki inference."""
    return [
        (person, list(path))
        for person in world.by_kind["person"]
        for path in INFERENCES
        if path[0] in person.facts and walk(person, list(path))
    ]


def _word_chain(draft: Draft, path: list[str], label: str, inference: str | None) -> str:
    if inference and draft.style != "musique":
        return inference.format(x=label)
    noun = label
    for link, relation in zip(draft.links, path[:-1], strict=False):
        phrase = _WORDED["phrases"][relation]
        if link.head.kind == "school" and relation.startswith("located"):
            phrase = "the town where {x} is located"
        noun = phrase.format(x=noun)
    options = QUESTIONS[path[-1]]
    if draft.style == "hotpotqa":
        options = options + _WORDED["asked_freely"].get(path[-1], [])
    # HotpotQA's annotators worded freely, so any wording; 2Wiki has templates, so mostly the first.
    plain = draft.style == "2wiki" and draft.rng.random() < 0.7
    text = (options[0] if plain else pick(draft.rng, options)).format(x=noun)
    return text[0].upper() + text[1:]


def _draft_comparison(world: World, rng: Random, truth: NoiseType, style: str) -> Draft | None:
    dated = rng.random() < 0.7
    pattern = pick(rng, _WORDED["compared"] if dated else _WORDED["same"])
    relation = pattern["relation"]
    pool = world.by_kind[pick(rng, pattern["kinds"])]
    a = pick(rng, pool)
    options = [e for e in pool if e is not a and relation in e.facts and e.name != a.name]
    if relation not in DATES and relation in a.facts and rng.random() < 0.45:
        options = [e for e in options if e.facts[relation] == a.facts[relation]]
    b = pick(rng, options) if options else None
    if b is None or relation not in a.facts:
        return None
    # The year in a film's title would answer a question about its date.
    if relation == "publication date" and (a.alikes or b.alikes):
        return None
    value_a, value_b = a.facts[relation][0], b.facts[relation][0]
    links = [Link(a, relation, value_a, text_of(value_a)), Link(b, relation, value_b, text_of(value_b))]
    draft = Draft(world, rng, truth, style, "comparison", links)
    if not dated:
        draft.question = pick(rng, pattern["questions"]).format(a=label_of(a), b=label_of(b))
        as_demonym = relation == "country of citizenship" and rng.random() < 0.5
        for link in links:
            link.annotated = render_value(link.tail, as_demonym)
        draft.answer = "yes" if value_a is value_b else "no"
        return draft
    later = rng.random() < 0.45
    if order_of(value_a)[0] == order_of(value_b)[0]:
        return None
    template = pick(rng, pattern["later" if later else "earlier"])
    draft.question = template.format(a=label_of(a), b=label_of(b), k=a.kind)
    draft.answer = links[winner(value_a, value_b, later)].head.name
    return draft


def _draft_bridge(world: World, rng: Random, truth: NoiseType, style: str) -> Draft | None:
    kind, maker = pick(rng, (("film", "director"), ("film", "director"), ("song", "performer"), ("book", "author")))
    relation = pick(rng, ("date of birth", "date of death", "country of citizenship"))
    chain_a = walk(pick(rng, world.by_kind[kind]), [maker, relation])
    chain_b = walk(pick(rng, world.by_kind[kind]), [maker, relation])
    if chain_a is None or chain_b is None or chain_a[0].tail is chain_b[0].tail:
        return None
    if chain_a[0].head.name == chain_b[0].head.name:
        return None
    chain_a[1].after, chain_b[1].after = 0, 1
    links = [chain_a[0], chain_b[0], chain_a[1], chain_b[1]]
    draft = Draft(world, rng, truth, style, "bridge_comparison", links)
    a, b = (label_of(link.head) for link in links[:2])
    value_a, value_b = links[2].tail, links[3].tail
    words = {"a": a, "b": b, "k": kind, "m": maker}
    if relation == "country of citizenship":
        if value_a is not value_b and rng.random() < 0.6:
            return None
        draft.question = pick(rng, _WORDED["bridged_same"]).format(**words)
        draft.answer = "yes" if value_a is value_b else "no"
        return draft
    if order_of(value_a) == order_of(value_b):
        return None
    later = rng.random() < 0.45
    draft.question = pick(rng, _WORDED["bridged"][relation]["later" if later else "earlier"]).format(**words)
    draft.answer = links[winner(value_a, value_b, later)].head.name
    return draft


def _draft_crossing(world: World, rng: Random, truth: NoiseType, style: str) -> Draft | None:
    if rng.random() < 0.5:
        return _draft_shared_film(world, rng, truth, style)
    relation = pick(rng, tuple(_WORDED["shared"]))
    people = [p for p in world.by_kind["person"] if relation in p.facts]
    a = pick(rng, people)
    partners = [p for p in people if p is not a and p.facts[relation] == a.facts[relation]]
    partners = [p for p in partners if p.name != a.name]
    if not partners:
        return None
    b, shared = pick(rng, partners), a.facts[relation][0]
    links = [Link(p, relation, shared, text_of(shared)) for p in (a, b)]
    draft = Draft(world, rng, truth, style, "intersection", links)
    draft.question = pick(rng, _WORDED["shared"][relation]).format(a=label_of(a), b=label_of(b))
    draft.answer = text_of(shared)
    return draft


def _draft_shared_film(world: World, rng: Random, truth: NoiseType, style: str) -> Draft | None:
    """Draft a question about a film by its director and another credit; the director's article names it too."""
    film = pick(rng, world.by_kind["film"])
    credits = [r for r in ("composer", "producer", "cast member") if r in film.facts]
    director = film.facts["director"][0]
    if not credits or not isinstance(director, Entity) or ("director", film) not in director.works:
        return None
    relation = pick(rng, credits)
    contributor = film.facts[relation][0]
    films = [f for f in world.by_kind["film"] if f.facts["director"][0] is director]
    if sum(f.facts.get(relation) == [contributor] for f in films) > 1 or not isinstance(contributor, Entity):
        return None
    links = [Link(film, "director", director, director.name, source=director)]
    links.append(Link(film, relation, contributor, contributor.name))
    draft = Draft(world, rng, truth, style, "intersection", links)
    people = {"director": director, relation: contributor}
    phrases = [CREDITS[key].format(x=label_of(person)) for key, person in people.items()]
    if rng.random() < 0.5:
        phrases.reverse()
    opening = pick(rng, ("Which film was", "What is the film that was"))
    if phrases[0].startswith("starring"):
        phrases.reverse()
    draft.question = f"{opening} {phrases[0]} and {phrases[1]}?"
    if phrases[1].startswith("starring"):
        draft.question = f"Which film {phrases[1]} was {phrases[0]}?"
    draft.answer = film.name
    return draft


_PLANS = {"chain": chain, "comparison": _draft_comparison, "bridge": _draft_bridge, "intersection": _draft_crossing}


def plan(world: World, rng: Random, truth: NoiseType, style: str) -> Draft:
    """Draft a sound row in a benchmark's style (see ``STYLES``), with its gold entities."""
    make = _PLANS[pick_weighted(rng, _KIND_SHARES[style])]
    while (draft := make(world, rng, truth, style)) is None:
        pass
    draft.choose_gold()
    return draft
