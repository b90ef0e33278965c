"""Noise: each type spoils a sound draft in one known way, or says that this draft can't be."""

import re
from collections.abc import Callable

from builders.synthetic.creation import CREATORS
from builders.synthetic.questions import DATES, KIN, Draft, Link, label_of, say, walk, winner
from builders.synthetic.world import Day, Entity, Value, one, order_of, text_of
from builders.synthetic.writers import BESIDE, spellings
from safe_stepwise.records import NoiseType

_FUNCTIONAL = {
    "place of birth", "place of death", "date of birth", "date of death", "place of burial",
    "country of citizenship", "country", "country of origin", "publication date", "inception",
    "headquarters location", "located in the administrative territorial entity", "capital",
}  # fmt: skip
_SEVERAL = {"educated at", "employer", "award received", "child", "sibling"}

_OF_THE_LIVING = {"director", "producer", "performer", "cast member", "spouse", "founded by"}
_LIFE = 100
"""No one in the world grows older."""


def spoil(draft: Draft) -> bool:
    """Give the draft its noise; False when this plan can't carry it soundly."""
    return draft.truth == "none" or NOISE[draft.truth][1](draft)


def _withhold(draft: Draft, link: Link) -> bool:
    """Write the gold articles without a hop's fact; False when they still give it or the answer."""
    head, tail = link.head, link.tail
    draft.withheld = link
    copy = draft.alter(head)
    copy.since = head.start_year
    copy.facts.pop(link.relation)
    if isinstance(tail, Entity) and tail in draft.gold:
        copy = draft.alter(tail)
        copy.works = [work for work in copy.works if work[1] is not head]
        for relation, values in list(copy.facts.items()):
            if head in values:
                del copy.facts[relation]
    return not (_together(draft, head, tail) or _shortcut(draft, link) or _still_decided(draft, link))


def _shortcut(draft: Draft, link: Link) -> bool:
    """Whether an article before the gap has the answer: a firm's has the country of its town."""
    if "comparison" in draft.kind or draft.kind == "intersection":
        return False
    before = draft.links[: draft.links.index(link) + 1]
    texts = (" ".join(draft.article(each.head).sentences) for each in before)
    return any(_names_any(text, draft.links[-1].tail) for text in texts)


def _still_decided(draft: Draft, link: Link) -> bool:
    """Whether other years settle a comparison: 1909 is before any death of one born in 1955."""
    branch = [link, *(draft.links[n] for n in _follow(draft, draft.links.index(link)))]
    mine, other = branch[-1], next(k for k in draft.links[-2:] if k is not branch[-1])
    if "comparison" not in draft.kind or mine.relation not in DATES:
        return False
    years = [k.head.start_year for k in draft.links if k.tail is mine.head]
    if link is mine:
        text = " ".join(draft.article(mine.head).sentences)
        years += map(int, re.findall(r"\b(?:1\d|20)\d\d\b", text))
    if not years:
        return False
    known = order_of(other.tail)[0]
    if mine.relation == "date of death":
        return known <= max(years) or known >= min(years) + _LIFE
    born = mine.relation == "date of birth"
    return known >= min(years) or (born and known <= max(years) - _LIFE)


def _together(draft: Draft, head: Entity, tail: Value) -> bool:
    """Whether a gold sentence about ``head`` has the tail (of a date: its year) in it."""
    return any(
        (e is head or head.name in sentence) and _names_any(sentence, tail)
        for e in draft.gold
        for sentence in draft.article(e).sentences
    )


def _names_any(text: str, value: Value) -> bool:
    """Whether the text has the value's name or demonym, or a date's year, in it."""
    if not isinstance(value, Entity):
        return str(order_of(value)[0]) in text
    # A town may be named with its region, in this or that way.
    name = value.name.partition(", ")[0] if value.kind == "town" else value.name
    return name in text or bool(value.demonym and value.demonym in text)


def _missing_evidence(draft: Draft) -> bool:
    link = one(draft.rng, draft.links)
    if not _withhold(draft, link):
        return False
    # Not even apart from each other in one passage: this is absence, not a relation left unsaid.
    for e in draft.gold:
        text = " ".join(draft.article(e).sentences)
        if (e is link.head or link.head.name in text) and _names_any(text, link.tail):
            return False
    return True


def _external_knowledge(draft: Draft) -> bool:
    named = [(k, k.tail) for k in draft.links if k.relation in BESIDE and isinstance(k.tail, Entity)]
    if not named:
        return False
    link, tail = one(draft.rng, named)
    if not _withhold(draft, link):
        return False
    head, draft.articles = link.head, {}
    of_a_person = head.kind == "person" and link.relation == "record label"
    key = f"beside {link.relation}{' of a person' if of_a_person else ''}"
    draft.alter(head).incidents.append((key, {"other": tail}))
    return True


def _wrong_answer(draft: Draft) -> bool:
    if draft.kind.endswith("comparison"):
        flipped = {"yes": "no", "no": "yes"}.get(draft.answer)
        names = [link.head.name for link in draft.links[:2]]
        draft.answer = flipped or names[draft.answer == names[0]]
        return True
    last = draft.links[-1]
    if last.relation not in _FUNCTIONAL or draft.answer != last.said:
        return False
    wrong = _another(draft, last.tail)
    texts = " ".join(s for e in draft.gold for s in draft.article(e).sentences)
    if any(name in texts for name in spellings(wrong)) or text_of(wrong) == text_of(last.tail):
        return False
    as_demonym = isinstance(last.tail, Entity) and last.said == last.tail.demonym
    draft.answer = say(wrong, as_demonym)
    draft.aliases = (wrong.demonym,) if draft.aliases and isinstance(wrong, Entity) else ()
    for link in draft.links:
        if link.tail is last.tail:
            link.said = draft.answer
    return True


def _another(draft: Draft, value: Value) -> Value:
    """A different value of the same sort."""
    rng = draft.rng
    if isinstance(value, Day):
        return Day(value.year + one(rng, (-7, -4, -2, -1, 1, 2, 3, 6)), 1 + int(rng.random() * 12),
                   1 + int(rng.random() * 28), value.month_first)  # fmt: skip
    if isinstance(value, str):
        return str(int(value) + one(rng, (-9, -5, -3, -2, 2, 4, 8)))
    if value.kind == "cemetery":
        return one(rng, draft.world.cemeteries)
    return one(rng, draft.world.by_kind[value.kind])


def _entity_confusion(draft: Draft) -> bool:
    options = [
        (n, mode, other)
        for n, link in enumerate(draft.links)
        if isinstance(link.tail, Entity) and any(k.after == n for k in draft.links)
        for mode, other in link.tail.alikes
    ]
    if not options:
        return False
    n, mode, other = one(draft.rng, options)
    link = draft.links[n]
    true = link.tail
    # The text itself has to show that a namesake, dead for decades, can't be meant.
    is_dated = link.relation in _OF_THE_LIVING | KIN and any(r in link.head.facts for r in DATES)
    if not isinstance(true, Entity) or (mode == "dates" and not is_dated):
        return False
    rest = _follow(draft, n)
    path = [draft.links[k].relation for k in rest]
    continued = walk(other, path)
    if continued is None or continued[-1].tail == draft.links[rest[-1]].tail:
        return False
    for k, new in zip(rest, continued, strict=True):
        old = draft.links[k]
        old.head, old.tail, old.said = new.head, new.tail, new.said
    _tell_apart(draft, link, mode, true, other)
    draft.choose_gold()
    if true in draft.gold or other not in draft.gold:
        return False
    return _settle(draft)


def _follow(draft: Draft, n: int) -> list[int]:
    """The links that come after link ``n`` in its branch."""
    rest = [n]
    while (after := next((k for k, link in enumerate(draft.links) if link.after == rest[-1]), None)) is not None:
        rest.append(after)
    return rest[1:]


def _tell_apart(draft: Draft, link: Link, mode: str, true: Entity, other: Entity) -> None:
    rng = draft.rng
    link.tail, link.said = other, other.name
    if mode == "epithet":
        base = other.name.removesuffix(" the Elder").removesuffix(" Sr.")
        link.said = one(rng, (other.name, base, base, true.name))
    elif mode == "town":
        meant = true.copy()
        meant.name = true.title
        draft.alter(link.head).facts[link.relation] = [meant]
    elif mode == "profession":
        # A credit tells the trade of whom it means; a marriage or a birth doesn't.
        if link.relation in CREATORS and rng.random() < 0.6:
            draft.alter(other).asides.append(("apart hatnote", {"other": true}))
        else:
            draft.alter(link.head).asides.append(("apart remark", {"meant": true, "other": other}))


def _settle(draft: Draft) -> bool:
    """Set the answer again after links were led elsewhere; False when it can't be told."""
    if draft.kind != "bridge_comparison":
        draft.answer_chain()
        return draft.answer not in draft.question
    left, right = draft.links[2], draft.links[3]
    if left.relation not in DATES:
        draft.answer = "yes" if left.said == right.said else "no"
        return True
    if order_of(left.tail)[0] == order_of(right.tail)[0]:
        return False
    later = any(word in draft.question for word in (" later", " younger"))
    draft.answer = draft.links[winner(left.tail, right.tail, later)].head.name
    return True


def _ambiguous_question(draft: Draft) -> bool:
    if draft.kind in ("comparison", "bridge_comparison"):
        return _tie(draft)
    if draft.kind == "intersection":
        return False
    ways = [_two_films, _two_makers, _two_values]
    draft.rng.shuffle(ways)
    return any(way(draft) for way in ways)


def _tie(draft: Draft) -> bool:
    """Both sides of a comparison get the same date."""
    left, right = draft.links[-2:]
    if left.relation not in DATES:
        return False
    head = right.head
    facts = {**head.facts, right.relation: [left.tail]}
    if head.kind == "person" and "date of death" in facts:
        span = order_of(facts["date of death"][0])[0] - order_of(facts["date of birth"][0])[0]
        if not 25 <= span <= 95:
            return False
    if head.kind == "person" and not _could_make(draft, head, facts):
        return False
    draft.alter(head).facts = facts
    right.tail, right.said = left.tail, text_of(left.tail)
    return True


def _could_make(draft: Draft, maker: Entity, facts: dict[str, list[Value]]) -> bool:
    """Whether a maker with these dates was grown up and alive when the works were made."""
    low = order_of(facts["date of birth"][0])[0] + 20
    high = order_of(facts["date of death"][0])[0] if "date of death" in facts else 2015
    works = [link.head for link in draft.links if link.tail is maker]
    works += [work for _, work in maker.works]
    return all(low <= work.start_year <= high for work in works)


def _two_films(draft: Draft) -> bool:
    """The question names a film without its year, and the gold passages hold two such films."""
    start = draft.links[0].head
    twin = next((other for mode, other in start.alikes if mode == "title"), None)
    if twin is None or not _another_answer(draft, twin, [link.relation for link in draft.links]):
        return False
    prefix = "film " if draft.style == "2wiki" else ""
    draft.question = draft.question.replace(label_of(start), f"{prefix}{start.name}")
    draft.gold.append(twin)
    return True


def _another_answer(draft: Draft, start: Entity, path: list[str]) -> bool:
    """Whether the path leads from ``start`` to an end, and to another one than the draft's."""
    links = walk(start, path)
    return links is not None and text_of(links[-1].tail) != text_of(draft.links[-1].tail)


def _two_makers(draft: Draft) -> bool:
    """A work by two people, of whom the annotation knows one, with another answer each."""
    link = draft.links[0]
    first, relation = link.tail, link.relation
    if relation not in CREATORS or relation == "cast member" or not isinstance(first, Entity):
        return False
    path = [other.relation for other in draft.links[1:]]
    year = link.head.start_year
    others = [
        p
        for p in draft.world.makers[relation]
        if p is not first
        and p.key != link.head.key
        and p.start_year + 20 <= year
        and ("date of death" not in p.facts or order_of(p.facts["date of death"][0])[0] >= year)
        and _another_answer(draft, p, path)
    ]
    if not others:
        return False
    second = one(draft.rng, others)
    both = [first, second] if draft.rng.random() < 0.5 else [second, first]
    draft.alter(link.head).facts[relation] = [*both]
    (draft.gold if draft.rng.random() < 0.6 else draft.beside).append(second)
    return True


def _two_values(draft: Draft) -> bool:
    """The last hop has two values in the text, of which the annotation knows one."""
    last = draft.links[-1]
    tail = last.tail
    if last.relation not in _SEVERAL or not isinstance(tail, Entity):
        return False
    pool = draft.world.by_kind[tail.kind]
    if tail.kind == "person":
        pool = [p for p in pool if abs(p.start_year - tail.start_year) < 8]
        pool = [p for p in pool if p.short != tail.short]
    others = [e for e in pool if e is not tail and e is not last.head and e not in draft.gold]
    if not others:
        return False
    second = one(draft.rng, others)
    if tail.kind == "person":
        second = second.copy()
        second.name = f"{second.name.split()[0]} {tail.short}"
    both = [tail, second] if draft.rng.random() < 0.5 else [second, tail]
    draft.alter(last.head).facts[last.relation] = [*both]
    return True


NOISE: dict[NoiseType, tuple[float, Callable[[Draft], bool]]] = {
    "missing_evidence": (0.25, _missing_evidence),
    "entity_confusion": (0.2, _entity_confusion),
    "external_knowledge": (0.2, _external_knowledge),
    "wrong_answer": (0.15, _wrong_answer),
    "ambiguous_question": (0.15, _ambiguous_question),
    "unparsed": (0.05, lambda _: True),  # its row goes without annotations
}
"""Each type's share of all noise, and how it spoils a draft; a new type is an entry here."""


def shares() -> dict[NoiseType, float]:
    """The share of each type of all noise."""
    return {name: share for name, (share, _) in NOISE.items()}
