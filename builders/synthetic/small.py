"""Makes rows of a small world: chains of two or three hops over a few passages of one sentence each.

They are for models that learn from thousands of short rows. Every passage states at most one fact; the distractors
state the same relations of other entities. The splits share no name, as the hash of a word decides on its split.
"""

from collections.abc import Callable
from hashlib import sha256
from random import Random

from builders.synthetic.noise import spoil
from builders.synthetic.questions import Draft, chain
from builders.synthetic.world import Entity, World, pick, text_of
from safe_stepwise.records import NoiseType

MIN_PASSAGES, MAX_PASSAGES = 4, 8
"""Passages of a row: three hops need three, and at least one is a distractor."""
HOPS = (2, 3)
_TRIES = 400
"""Draws of a distractor at most; a world has about 400 entities."""
_SPLITS = ("train", "validation", "test")


def name_filter(split: str) -> Callable[[str], bool]:
    """Return a predicate of the words that may be names in a split; no word may be one in two splits."""
    place = _SPLITS.index(split) if split in _SPLITS else 0
    return lambda word: sha256(word.encode()).digest()[0] % len(_SPLITS) == place


def make_row(world: World, rng: Random, truth: NoiseType, passages: int) -> tuple[Draft, list[Entity]]:
    """Draft a row with exactly the noise ``truth``, and draw its distractors."""
    while True:
        draft = chain(world, rng, truth, "musique")
        if draft is None or len(draft.links) not in HOPS:
            continue
        if any(text_of(link.tail) in link.head.name for link in draft.links):
            continue
        draft.choose_gold()
        for e in draft.gold:
            draft.alter(e).asides = []
        if not _trim(draft) or not spoil(draft) or not _trim(draft):
            continue
        if (distractors := _pick_distractors(draft, passages - len(draft.gold))) is not None:
            return draft, distractors


def _trim(draft: Draft) -> bool:
    """Reduce the gold articles to the one fact that the chain needs; return False if that is impossible."""
    relations: dict[int, str] = {}
    for link in draft.links:
        source = link.source or link.head
        if relations.setdefault(source.key, link.relation) != link.relation:
            return False
    for e in draft.gold:
        _restrict(draft, e, relations.get(e.key))
    draft.articles = {}  # written before facts were removed
    is_short = all(len(draft.article(e).sentences) == 1 for e in draft.gold)
    draft.articles = {}  # spoiling may remove more
    return is_short


def _restrict(draft: Draft, e: Entity, relation: str | None) -> None:
    """Restrict an entity's article to one relation, if the entity has it."""
    copy = draft.alter(e)
    copy.since = copy.start_year
    values = copy.facts.get(relation) if relation else None
    copy.facts = {relation: values} if relation and values else {}
    copy.works = []


def _pick_distractors(draft: Draft, number: int) -> list[Entity] | None:
    """Draw entities with the same relations that share no value with the gold ones; None if there are too few."""
    world, rng = draft.world, draft.rng
    near = {e.key for e in draft.gold}
    near |= {link.tail.key for link in draft.links if isinstance(link.tail, Entity)}
    answers = {text_of(link.tail) for link in draft.links} | {draft.answer}
    names = {e.name for e in draft.gold} | {e.title for e in draft.gold}
    chosen = [*draft.beside]
    for n in range(_TRIES):
        if len(chosen) >= number:
            return chosen[:number]
        link = draft.links[n % len(draft.links)]
        e = pick(rng, world.by_kind[link.head.kind])
        values = e.facts.get(link.relation, [])
        if e.key in near or not {e.name, e.title}.isdisjoint(names) or not values:
            continue
        if any(getattr(value, "key", None) in near or text_of(value) in answers for value in values):
            continue
        _restrict(draft, e, link.relation)
        draft.altered[e.key].asides = []
        if len(draft.article(e).sentences) == 1:
            chosen.append(e)
            near.add(e.key)
            names |= {e.name, e.title}
    return None
