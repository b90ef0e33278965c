"""Whether a step states a triple whose relation is in words of its own, or a question."""

import re
from collections.abc import Sequence

from safe_stepwise.checking.faithfulness.joining import direction, governing
from safe_stepwise.checking.faithfulness.said import (
    STOP_WORDS,
    Said,
    Stand,
    named,
    overlaps,
    pairs,
    said_by,
    stand_ins,
    verbatim,
)
from safe_stepwise.checking.statements import is_free
from safe_stepwise.checking.step_reading import content_words, coverage
from safe_stepwise.language.reading import Span, clean
from safe_stepwise.language.senses import sense_cues
from safe_stepwise.language.text import dates_in
from safe_stepwise.records import Triple

_LONG = 5
_MOST = 0.65
"""Share of a long tail's content words that a step has to have."""
_LEAST = 1 / 3
"""Share of a free relation's content words that say it of what was told before."""
_NO_OWNERS = frozenset("he she it they him her them".split())
_HALF = 0.5
"""Share of a free relation's content words that say it."""


def stand_of_free(said: Said, triple: Triple, heads: tuple[Span, ...], tails: tuple[Span, ...]) -> Stand:
    """The same for a relation in words of its own, or a question."""
    asks = clean(triple.relation)
    tails = tuple(span for span in tails if said.clean[slice(*span)] not in asks)
    words = content_words(triple.relation) - content_words(triple.head)
    words -= content_words(triple.tail)
    has_head = bool(heads or named(said, triple.head)) or _covers(said, triple.head)
    if not has_head and triple.head in said.focus:
        has_head = bool(stand_ins(said, tails))
    if not has_head and "…" not in triple.relation:
        # What a question asks about stands in it; its head is but the page that answers it.
        asked_about = said_by(triple.relation).reading.values
        has_head = any(said.named(name) for name in asked_about if clean(name) not in STOP_WORDS)
    has_tail = bool(tails) or _covers(said, triple.tail)
    share = coverage(words, said.reading.claim)
    if not has_tail:
        told_before = heads and words and triple.tail in said.focus
        by_pronoun = told_before and any(said.clean[a:b] in _NO_OWNERS for a, b in said.pronouns)
        return "states" if by_pronoun and share >= _HALF else "no"
    if not has_head:
        enough = _LEAST if triple.head in said.focus else _MOST
        about_another = _names_strangers(said, asks, tails)
        return "states" if words and share >= enough and not about_another else "no"
    if by_name := verbatim(said, triple.relation, heads, tails):
        return by_name
    if not words or share >= _HALF:
        turned = _turned(said, triple, heads, tails) or _asked_turned(said, triple, heads, tails)
        return "reversed" if turned else "states"
    return _by_sense(said, triple, heads, tails)


def _names_strangers(said: Said, asks: str, tails: Sequence[Span]) -> bool:
    """Whether a step names somebody of whom neither the question nor an earlier step speaks."""
    return any(
        " " in value and said.clean[slice(*span)] not in asks
        and value not in said.familiar
        and not dates_in(said.clean[slice(*span)])
        and not any(overlaps(span, tail) for tail in tails)
        for span, value in said.values
    )  # fmt: skip


def _by_sense(said: Said, triple: Triple, heads: tuple[Span, ...], tails: tuple[Span, ...]) -> Stand:
    """The same where a step has other words than a free relation: by what both mean.

    Words of which no sense is known are no other relation: such a step states the triple.
    """
    asked = sense_cues(clean(triple.relation))
    cues = [
        cue
        for head, tail in pairs(heads, tails)
        if head[1] <= tail[0] or tail[1] <= head[0]
        for cue in governing(said, min(head, tail), max(head, tail))
    ]  # fmt: skip
    senses = {cue.sense for cue in asked}
    if "nation" in senses:
        senses.add("birth")  # where somebody is from
    if shared := senses & {cue.sense for cue in cues or said.cues}:
        return "reversed" if _turns(said, triple, heads, tails, shared) else "states"
    by_name = bool(heads or said.pronouns)
    known, told = ([c for c in those if c.form != "nouns"] for those in (asked, cues))
    if known and told and heads and tails:
        return "relation"
    return "states" if by_name and tails else "near"


def _turns(said: Said, triple: Triple, heads: Sequence[Span], tails: Sequence[Span], senses: set[str]) -> bool:
    """Whether a step joins the ends by a sense of a free relation the other way round."""
    if is_free(triple):
        return _asked_turned(said, triple, heads, tails)
    gold = said_by(f"{triple.head} {triple.relation} {triple.tail}.")
    ours, theirs = (
        {
            direction(of, cue, head, tail)
            for cue in of.cues if cue.sense in senses
            for head, tail in pairs(ones, others)
        }
        for of, ones, others in (
            (gold, gold.named(triple.head), gold.named(triple.tail)), (said, heads, tails)
        )
    )  # fmt: skip
    return len(ours) == len(theirs) == 1 and next(iter(ours)) * next(iter(theirs)) == -1


def _asked_turned(said: Said, triple: Triple, heads: Sequence[Span], tails: Sequence[Span]) -> bool:
    """Whether a step joins the ends of a question of one fact by its verb the other way round.

    What is asked for stands in the question as its first word: "What does Oru flow into?".
    """
    asked = said_by(triple.relation.replace("…", triple.head))
    opening = re.match(r" ?(?:what|wh[oi]\w*|where)\b", asked.clean)
    if not opening or not heads or not tails:
        return False
    heads = [*heads, *(span for span in said.pronouns if span[0] > heads[0][1])]

    def ways(of: Said, ones: Sequence[Span], others: Sequence[Span]) -> set[tuple[str, int]]:
        return {
            (cue.sense, direction(of, cue, one, other))
            for cue in of.cues if cue.form in ("to_tail", "to_head")
            for one, other in pairs(ones, others) if not overlaps(one, other)
        }  # fmt: skip

    ours = ways(asked, asked.named(triple.head), [opening.span()])
    theirs = ways(said, heads, tails)
    return any((sense, -way) in theirs for sense, way in ours if way) and not ours & theirs


def _covers(said: Said, name: str) -> bool:
    """Whether a step has most of the words of a phrase, which is no name."""
    words = content_words(name)
    if not words:
        return clean(name) in said.clean
    if len(words) == 1 or (len(name.split()) < _LONG and name[:1].isupper()):
        return False
    return coverage(words, said.reading.claim) >= _MOST


def _turned(said: Said, triple: Triple, heads: tuple[Span, ...], tails: tuple[Span, ...]) -> bool:
    """Whether a step has a free relation's very words between its ends, exchanged."""
    relation = f" {clean(triple.relation)} "
    cues = sense_cues(relation)
    if not relation.strip() or any(cue.form == "both" for cue in cues):
        return False

    def between(ones: Sequence[Span], others: Sequence[Span]) -> bool:
        return any(
            said.clean[a[1] : b[0]].startswith(relation) or said.clean[a[1] : b[0]] == relation
            for a, b in pairs(ones, others) if a[1] < b[0]
        )  # fmt: skip

    return between(tails, heads) and not between(heads, tails)
