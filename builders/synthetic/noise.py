"""Adds noise to sound drafts of rows: one function for each type of noise, which returns False if it can't."""

import re
from collections.abc import Callable

from builders.synthetic import creation, writers
from builders.synthetic.questions import DATES, GROUPS, KIN, Draft, Link, label_of, render_value, walk, winner
from builders.synthetic.world import Day, Entity, Value, order_of, pick, text_of
from safe_stepwise.records import NoiseType

_FUNCTIONAL, _SEVERAL, _OF_THE_LIVING = (GROUPS[name] for name in ("functional", "several", "of_the_living"))
_LIFE = 100
"""Highest age in years of anyone in the world."""


def spoil(draft: Draft) -> bool:
    """Add the noise of type ``draft.truth``; return False if the draft does not allow it."""
    return draft.truth == "none" or NOISE[draft.truth][1](draft)


def _withhold(draft: Draft, link: Link) -> bool:
    """Remove a hop's fact from the gold articles; return False if they still state it or the answer."""
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
    """Whether an article before the gap has the answer, as a firm's has the country of its town."""
    if "comparison" in draft.kind or draft.kind == "intersection":
        return False
    texts = (" ".join(draft.article(hop.head).sentences) for hop in draft.links[: draft.links.index(link) + 1])
    return any(_names_any(text, draft.links[-1].tail) for text in texts)


def _still_decided(draft: Draft, link: Link) -> bool:
    """Whether other years decide a comparison: 1909 is before the death of anyone born in 1955."""
    branch = [link, *(draft.links[n] for n in _follow(draft, draft.links.index(link)))]
    gap_end, rival = branch[-1], next(k for k in draft.links[-2:] if k is not branch[-1])
    if "comparison" not in draft.kind or gap_end.relation not in DATES:
        return False
    years = [k.head.start_year for k in draft.links if k.tail is gap_end.head]
    if link is gap_end:
        years += map(int, re.findall(r"\b(?:1\d|20)\d\d\b", " ".join(draft.article(gap_end.head).sentences)))
    if not years:
        return False
    rival_year = order_of(rival.tail)[0]
    if gap_end.relation == "date of death":
        return rival_year <= max(years) or rival_year >= min(years) + _LIFE
    born = gap_end.relation == "date of birth"
    return rival_year >= min(years) or (born and rival_year <= max(years) - _LIFE)


def _together(draft: Draft, head: Entity, tail: Value) -> bool:
    """Whether a gold sentence about ``head`` mentions the tail (for a date: its year)."""
    return any(
        (e is head or head.name in sentence) and _names_any(sentence, tail)
        for e in draft.gold
        for sentence in draft.article(e).sentences
    )


def _names_any(text: str, value: Value) -> bool:
    """Whether the text contains the value's name or demonym, or a date's year."""
    if not isinstance(value, Entity):
        return str(order_of(value)[0]) in text
    # A writer may name a town with its region, in several forms.
    name = value.name.partition(", ")[0] if value.kind == "town" else value.name
    return name in text or bool(value.demonym and value.demonym in text)


def _missing_evidence(draft: Draft) -> bool:
    """Remove the fact of one hop from the passages."""
    link = pick(draft.rng, draft.links)
    if not _withhold(draft, link):
        return False
    # Nor may both ends occur apart in one passage: the evidence must be absent, not only unrelated.
    for e in draft.gold:
        text = " ".join(draft.article(e).sentences)
        if (e is link.head or link.head.name in text) and _names_any(text, link.tail):
            return False
    return True


def _external_knowledge(draft: Draft) -> bool:
    """Replace the fact of one hop by a sentence that names both ends without their relation."""
    candidates = [(k, k.tail) for k in draft.links if k.relation in writers.BESIDE and isinstance(k.tail, Entity)]
    if not candidates:
        return False
    link, tail = pick(draft.rng, candidates)
    if not _withhold(draft, link):
        return False
    head, draft.articles = link.head, {}
    of_a_person = head.kind == "person" and link.relation == "record label"
    key = f"beside {link.relation}{' of a person' if of_a_person else ''}"
    draft.alter(head).incidents.append((key, {"other": tail}))
    return True


def _wrong_answer(draft: Draft) -> bool:
    """Annotate another answer than the passages give."""
    if draft.kind.endswith("comparison"):
        flipped = {"yes": "no", "no": "yes"}.get(draft.answer)
        names = [link.head.name for link in draft.links[:2]]
        draft.answer = flipped or names[draft.answer == names[0]]
        return True
    last = draft.links[-1]
    if last.relation not in _FUNCTIONAL or draft.answer != last.annotated:
        return False
    wrong = _different_value(draft, last.tail)
    texts = " ".join(s for e in draft.gold for s in draft.article(e).sentences)
    if any(name in texts for name in writers.written_forms(wrong)) or text_of(wrong) == text_of(last.tail):
        return False
    as_demonym = isinstance(last.tail, Entity) and last.annotated == last.tail.demonym
    draft.answer = render_value(wrong, as_demonym)
    draft.aliases = (wrong.demonym,) if draft.aliases and isinstance(wrong, Entity) else ()
    for link in draft.links:
        if link.tail is last.tail:
            link.annotated = draft.answer
    return True


def _different_value(draft: Draft, value: Value) -> Value:
    """Draw a different value of the same sort."""
    rng = draft.rng
    if isinstance(value, Day):
        return Day(value.year + pick(rng, (-7, -4, -2, -1, 1, 2, 3, 6)), 1 + int(rng.random() * 12),
                   1 + int(rng.random() * 28), value.month_first)  # fmt: skip
    if isinstance(value, str):
        return str(int(value) + pick(rng, (-9, -5, -3, -2, 2, 4, 8)))
    if value.kind == "cemetery":
        return pick(rng, draft.world.cemeteries)
    return pick(rng, draft.world.by_kind[value.kind])


def _entity_confusion(draft: Draft) -> bool:
    options = [
        (n, mode, namesake)
        for n, link in enumerate(draft.links)
        if isinstance(link.tail, Entity) and any(k.after == n for k in draft.links)
        for mode, namesake in link.tail.alikes
    ]
    if not options:
        return False
    n, mode, namesake = pick(draft.rng, options)
    link = draft.links[n]
    true = link.tail
    # The text has to show by its dates that a namesake, dead for decades, can't be meant.
    is_dated = link.relation in _OF_THE_LIVING | KIN and any(r in link.head.facts for r in DATES)
    if not isinstance(true, Entity) or (mode == "dates" and not is_dated):
        return False
    following = _follow(draft, n)
    continued = walk(namesake, [draft.links[k].relation for k in following])
    if continued is None or continued[-1].tail == draft.links[following[-1]].tail:
        return False
    for k, new in zip(following, continued, strict=True):
        old = draft.links[k]
        old.head, old.tail, old.annotated = new.head, new.tail, new.annotated
    _tell_apart(draft, link, mode, true, namesake)
    draft.choose_gold()
    if true in draft.gold or namesake not in draft.gold:
        return False
    return _settle(draft)


def _follow(draft: Draft, n: int) -> list[int]:
    """Return the indices of the links after link ``n`` in its branch."""
    following = [n]
    while (after := next((k for k, link in enumerate(draft.links) if link.after == following[-1]), None)) is not None:
        following.append(after)
    return following[1:]


def _tell_apart(draft: Draft, link: Link, mode: str, true: Entity, namesake: Entity) -> None:
    rng = draft.rng
    link.tail, link.annotated = namesake, namesake.name
    if mode == "epithet":
        base = namesake.name.removesuffix(" the Elder").removesuffix(" Sr.")
        link.annotated = pick(rng, (namesake.name, base, base, true.name))
    elif mode == "town":
        titled = true.copy()
        titled.name = true.title
        draft.alter(link.head).facts[link.relation] = [titled]
    elif mode == "profession":
        # A credit implies the trade of the person meant; a marriage or a birth doesn't.
        if link.relation in creation.CREATORS and rng.random() < 0.6:
            draft.alter(namesake).asides.append(("apart hatnote", {"other": true}))
        else:
            draft.alter(link.head).asides.append(("apart remark", {"meant": true, "other": namesake}))


def _settle(draft: Draft) -> bool:
    """Set the answer again after links were changed; False if the draft then has none."""
    if draft.kind != "bridge_comparison":
        draft.answer_chain()
        return draft.answer not in draft.question
    side_a, side_b = draft.links[2], draft.links[3]
    if side_a.relation not in DATES:
        draft.answer = "yes" if side_a.annotated == side_b.annotated else "no"
        return True
    if order_of(side_a.tail)[0] == order_of(side_b.tail)[0]:
        return False
    later = any(word in draft.question for word in (" later", " younger"))
    draft.answer = draft.links[winner(side_a.tail, side_b.tail, later)].head.name
    return True


def _ambiguous_question(draft: Draft) -> bool:
    if draft.kind in ("comparison", "bridge_comparison"):
        return _tie(draft)
    if draft.kind == "intersection":
        return False
    attempts = [_two_films, _two_makers, _two_values]
    draft.rng.shuffle(attempts)
    return any(attempt(draft) for attempt in attempts)


def _tie(draft: Draft) -> bool:
    """Give both sides of a comparison the same date; False if that can't be."""
    side_a, side_b = draft.links[-2:]
    if side_a.relation not in DATES:
        return False
    head = side_b.head
    facts = {**head.facts, side_b.relation: [side_a.tail]}
    if head.kind == "person" and "date of death" in facts:
        span = order_of(facts["date of death"][0])[0] - order_of(facts["date of birth"][0])[0]
        if not 25 <= span <= 95:
            return False
    if head.kind == "person" and not _could_make(draft, head, facts):
        return False
    draft.alter(head).facts = facts
    side_b.tail, side_b.annotated = side_a.tail, text_of(side_a.tail)
    return True


def _could_make(draft: Draft, maker: Entity, facts: dict[str, list[Value]]) -> bool:
    """Whether a maker with these dates was grown up and alive when the works were made."""
    low = order_of(facts["date of birth"][0])[0] + 20
    high = order_of(facts["date of death"][0])[0] if "date of death" in facts else 2015
    works = [link.head for link in draft.links if link.tail is maker]
    works += [work for _, work in maker.works]
    return all(low <= work.start_year <= high for work in works)


def _two_films(draft: Draft) -> bool:
    """Let the question name a film without its year, and add a second film of that name to the gold passages."""
    start = draft.links[0].head
    twin = next((namesake for mode, namesake in start.alikes if mode == "title"), None)
    if twin is None or not _has_different_answer(draft, twin, [link.relation for link in draft.links]):
        return False
    prefix = "film " if draft.style == "2wiki" else ""
    draft.question = draft.question.replace(label_of(start), f"{prefix}{start.name}")
    draft.gold.append(twin)
    return True


def _has_different_answer(draft: Draft, start: Entity, path: list[str]) -> bool:
    """Whether the path leads from ``start`` to another end than the draft's."""
    links = walk(start, path)
    return links is not None and text_of(links[-1].tail) != text_of(draft.links[-1].tail)


def _two_makers(draft: Draft) -> bool:
    """Give a work a second maker with another answer, of whom the annotation says nothing."""
    link = draft.links[0]
    first, relation = link.tail, link.relation
    if relation not in creation.CREATORS or relation == "cast member" or not isinstance(first, Entity):
        return False
    path = [hop.relation for hop in draft.links[1:]]
    year = link.head.start_year
    candidates = [
        person
        for person in draft.world.makers[relation]
        if person is not first
        and person.key != link.head.key
        and person.start_year + 20 <= year
        and ("date of death" not in person.facts or order_of(person.facts["date of death"][0])[0] >= year)
        and _has_different_answer(draft, person, path)
    ]
    if not candidates:
        return False
    extra = pick(draft.rng, candidates)
    pair = [first, extra] if draft.rng.random() < 0.5 else [extra, first]
    draft.alter(link.head).facts[relation] = [*pair]
    (draft.gold if draft.rng.random() < 0.6 else draft.beside).append(extra)
    return True


def _two_values(draft: Draft) -> bool:
    """Give the last hop a second value in the text, which the annotation lacks."""
    last = draft.links[-1]
    tail = last.tail
    if last.relation not in _SEVERAL or not isinstance(tail, Entity):
        return False
    pool = draft.world.by_kind[tail.kind]
    if tail.kind == "person":
        pool = [p for p in pool if abs(p.start_year - tail.start_year) < 8]
        pool = [p for p in pool if p.short != tail.short]
    candidates = [e for e in pool if e is not tail and e is not last.head and e not in draft.gold]
    if not candidates:
        return False
    extra = pick(draft.rng, candidates)
    if tail.kind == "person":
        extra = extra.copy()
        extra.name = f"{extra.name.split()[0]} {tail.short}"
    pair = [tail, extra] if draft.rng.random() < 0.5 else [extra, tail]
    draft.alter(last.head).facts[last.relation] = [*pair]
    return True


NOISE: dict[NoiseType, tuple[float, Callable[[Draft], bool]]] = {
    "missing_evidence": (0.25, _missing_evidence),
    "entity_confusion": (0.2, _entity_confusion),
    "external_knowledge": (0.2, _external_knowledge),
    "wrong_answer": (0.15, _wrong_answer),
    "ambiguous_question": (0.15, _ambiguous_question),
    "unparsed": (0.05, lambda _: True),  # its row goes without annotations
}
"""Each type's share of all noise, and the function that spoils a draft; a new type is an entry here."""
