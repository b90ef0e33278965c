"""A small world: chains of two or three hops over a few passages of one sentence each.

For models that are to learn from thousands of short rows. Every passage tells one fact of its
entity, or what is none; the others tell the same relations of other entities. No name of one split
is a name of another: words are dealt out to splits by their hash.
"""

from collections.abc import Callable
from hashlib import sha256
from random import Random

from builders.synthetic.noise import spoil
from builders.synthetic.questions import Draft, chain
from builders.synthetic.world import Entity, World, one, text_of
from safe_stepwise.records import NoiseType

LEAST, MOST = 4, 8
"""Passages of a row: three hops need three, and one has to answer nothing."""
HOPS = (2, 3)
_TRIES = 400
"""Drawn entities until one may stand beside the gold ones; a world has about 400."""
_SPLITS = ("train", "validation", "test")


def allowed(split: str) -> Callable[[str], bool]:
    """Whether a word may be a name in a split: in no other may it."""
    place = _SPLITS.index(split) if split in _SPLITS else 0
    return lambda word: sha256(word.encode()).digest()[0] % len(_SPLITS) == place


def make_row(world: World, rng: Random, truth: NoiseType, passages: int) -> tuple[Draft, list[Entity]]:
    """A row with exactly the noise ``truth``, and the entities of the passages beside its own."""
    while True:
        draft = chain(world, rng, truth, "musique")
        if draft is None or len(draft.links) not in HOPS:
            continue
        if any(text_of(link.tail) in link.head.name for link in draft.links):
            continue
        draft.choose_gold()
        for e in draft.gold:
            draft.alter(e).asides = []
        if not _cut(draft) or not spoil(draft) or not _cut(draft):
            continue
        others = _others(draft, passages - len(draft.gold))
        if others is not None:
            return draft, others


def _cut(draft: Draft) -> bool:
    """Leave the gold articles the one fact that the chain needs; False where that can't be."""
    told: dict[int, str] = {}
    for link in draft.links:
        source = link.source or link.head
        if told.setdefault(source.key, link.relation) != link.relation:
            return False
    for e in draft.gold:
        _tell(draft, e, told.get(e.key))
    draft.articles = {}  # written before facts were taken out
    is_short = all(len(draft.article(e).sentences) == 1 for e in draft.gold)
    draft.articles = {}  # what comes may take out more
    return is_short


def _tell(draft: Draft, e: Entity, relation: str | None) -> None:
    """Have an entity's article tell one relation, if it has it."""
    copy = draft.alter(e)
    copy.since = copy.start_year
    kept = copy.facts.get(relation) if relation else None
    copy.facts = {relation: kept} if relation and kept else {}
    copy.works = []


def _others(draft: Draft, number: int) -> list[Entity] | None:
    """Entities of the same kinds that tell the same relations, and nothing of the gold ones."""
    world, rng = draft.world, draft.rng
    near = {e.key for e in draft.gold}
    near |= {link.tail.key for link in draft.links if isinstance(link.tail, Entity)}
    known = {text_of(link.tail) for link in draft.links} | {draft.answer}
    names = {e.name for e in draft.gold} | {e.title for e in draft.gold}
    chosen = [*draft.beside]
    for n in range(_TRIES):
        if len(chosen) >= number:
            return chosen[:number]
        link = draft.links[n % len(draft.links)]
        e = one(rng, world.by_kind[link.head.kind])
        values = e.facts.get(link.relation, [])
        if e.key in near or not {e.name, e.title}.isdisjoint(names) or not values:
            continue
        if any(getattr(value, "key", None) in near or text_of(value) in known for value in values):
            continue
        _tell(draft, e, link.relation)
        draft.altered[e.key].asides = []
        if len(draft.article(e).sentences) == 1:
            chosen.append(e)
            near.add(e.key)
            names |= {e.name, e.title}
    return None
