"""Turns a draft into a row: its passages, distractors and annotations."""

from collections.abc import Sequence
from functools import lru_cache

from builders.synthetic.creation import CREATORS
from builders.synthetic.questions import CREDITS, QUESTIONS, Draft, label_of
from builders.synthetic.world import NAME, Entity, Value, World, pick, text_of
from safe_stepwise.records import Hop, Passage, Question, SupportingFact, Triple
from safe_stepwise.store.grouping import grouped


def to_question(draft: Draft, identifier: str, split: str, distractors: Sequence[Entity] | None = None) -> Question:
    """Make the row of a draft; ``distractors`` are drawn if None."""
    entities = [*draft.gold, *(_choose_distractors(draft) if distractors is None else distractors)]
    draft.rng.shuffle(entities)
    number = {e.key: n for n, e in enumerate(entities, 1)}
    stripped = draft.truth == "unparsed"
    gold = set() if stripped else {e.key for e in draft.gold}
    articles = [(draft.article(e), e.key in gold) for e in entities]
    passages = tuple(Passage(article.title, article.sentences, is_gold) for article, is_gold in articles)
    facts: dict[SupportingFact, None] = {}
    evidence: list[Triple] = []
    for link in draft.links:
        source = draft.article(link.source or link.head)
        facts[SupportingFact(source.title, source.states.get((link.head.key, link.relation), 0))] = None
        head = link.head
        titled = draft.style == "2wiki" and draft.rng.random() < 0.4 and head.kind != "town"
        evidence.append(Triple(head.title if titled else head.name, link.relation, link.annotated))
    hops = _make_decomposition(draft, number) if draft.style == "musique" else ()
    return Question(
        id=identifier,
        benchmark=NAME,
        split=split,
        question=draft.question,
        answer=draft.answer,
        aliases=draft.aliases,
        kind=draft.kind,
        hops=len(draft.links),
        passages=passages,
        supporting_facts=() if stripped else tuple(facts),
        evidence=() if stripped else tuple(evidence),
        decomposition=() if stripped else hops,
    )


def _make_decomposition(draft: Draft, number: dict[int, int]) -> tuple[Hop, ...]:
    hops = []
    for link in draft.links:
        source = link.source or link.head
        if draft.kind == "intersection" and link.head.kind == "film":
            credit = CREDITS[link.relation].format(x=text_of(link.tail))
            credit = credit if link.relation == "cast member" else f"that was {credit}"
            hops.append(Hop(f"What is the film {credit}?", draft.answer, number[source.key]))
            continue
        label = label_of(link.head) if draft.truth != "ambiguous_question" else link.head.name
        subject = label if link.after is None else f"#{link.after + 1}"
        if draft.rng.random() < 0.5:
            question = f"{subject} >> {link.relation}"
        else:
            question = pick(draft.rng, QUESTIONS[link.relation]).format(x=subject)
            question = question[0].upper() + question[1:]
        hops.append(Hop(question, link.annotated, number[source.key]))
    return tuple(hops)


def _choose_distractors(draft: Draft) -> list[Entity]:
    """Draw entities whose passages answer nothing: namesakes first, then any of the world."""
    world, rng = draft.world, draft.rng
    size = (20 if draft.style == "musique" else 10) - len(draft.gold)
    # Mentions of places do no harm, unless the row withholds evidence.
    strict = draft.truth == "missing_evidence"
    avoided_keys = {e.key for e in draft.gold if strict or e.kind not in ("town", "region", "country")}
    gold_keys = {e.key for e in draft.gold}
    namesakes = {namesake.key for e in draft.gold for _, namesake in e.alikes}
    titles = {e.title for e in draft.gold}
    chosen: list[Entity] = []
    withheld = draft.withheld

    def add_if_harmless(e: Entity) -> None:
        article = world.articles[e.key]
        mentions = article.mentions
        # A namesake may have the value that the row withholds.
        if strict and (e.key in namesakes or not gold_keys.isdisjoint(o.key for _, o in e.alikes)):
            return
        # An article may mention someone of its name beside that value.
        if strict and withheld and any(withheld.head.name in s for s in article.sentences):
            return
        # A town that the gapped article names would give the country that the article withholds.
        if withheld and e.key in draft.article(withheld.head).mentions and _has_fact(e, withheld.tail):
            return
        # A border, stated by the other country, would be a second answer.
        avoided = gold_keys if e.kind == "country" else avoided_keys
        if e.title not in titles and len(chosen) < size and avoided.isdisjoint(mentions):
            titles.add(e.title)
            chosen.append(e)

    chosen += draft.beside
    titles |= {e.title for e in draft.beside}
    for namesake in _choose_lookalikes(draft):
        add_if_harmless(namesake)
    while len(chosen) < size:
        add_if_harmless(pick(rng, world.entities))
    return chosen


def _has_fact(e: Entity, value: Value) -> bool:
    return isinstance(value, Entity) and any(
        isinstance(v, Entity) and v.key == value.key for vs in e.facts.values() for v in vs
    )


def _choose_lookalikes(draft: Draft) -> list[Entity]:
    if draft.truth == "entity_confusion":
        return []
    lookalikes = [
        namesake
        for e in draft.gold
        for mode, namesake in e.alikes
        if mode in ("epithet", "title")
        or (mode != "town" and all(link.relation in CREATORS for link in draft.links if link.tail is e))
    ]
    surnames = dict.fromkeys(e.short for e in draft.gold if e.short)
    kin = [p for name in surnames for p in _bearers(draft.world).get(name, ()) if p not in draft.gold]
    return lookalikes + kin[:3]


@lru_cache(maxsize=1)
def _bearers(world: World) -> dict[str, list[Entity]]:
    return grouped(world.by_kind["person"], lambda person: person.short)
