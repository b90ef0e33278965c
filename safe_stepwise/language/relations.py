"""The vocabulary of relations: how a sentence says them, what kind of thing their value is.

The data stands in ``vocabulary/relations.yaml`` and ``vocabulary/nations.yaml``; adding a relation
is an entry there. A *cue* is the wording that says a relation ("directed by", "son of").
"""

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from safe_stepwise.language.text import former_names
from safe_stepwise.language.vocabulary import load, word_list, wording

ValueKind = Literal["date", "place", "nation", "name"]
_VOCABULARY = load("relations")


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation, its kind of value and its cues.

    Any wording says a relation without a ``group``. A ``functional`` one has a single value, so
    that another stated value contradicts. ``loosely``: cues that a fair reader may take for it.
    """

    name: str
    kind: ValueKind
    group: str = ""
    cues: frozenset[str] = frozenset()
    functional: bool = False
    loosely: frozenset[str] = frozenset()
    coordinated: bool = False
    """Whether a sentence may give several values, joined by "and"."""
    bracketed: bool = False
    """Whether an article may put the value in brackets behind its subject's name, without a word."""
    noun: bool = True
    """Whether "the … of somebody" can word it."""


def _relation(name: str, entry: dict[str, Any]) -> Relation:
    sets = {key: frozenset(cues) for key, cues in entry.items() if key in ("cues", "loosely")}
    return Relation(name, **{key: value for key, value in entry.items() if key != "asked"} | sets)


RELATIONS = {name: _relation(name, entry) for name, entry in _VOCABULARY["relations"].items()}


@lru_cache(maxsize=32)
def cue_pattern(group: str) -> re.Pattern[str]:
    """One pattern for all cues of a group; the label of a match is its ``lastgroup``."""
    labels = _VOCABULARY["cues"][group].items()
    # The boundary stands before them all, so that it alone is tried within a word.
    alternatives = "|".join(rf"(?P<{label}>(?:{'|'.join(cues)})\b)" for label, cues in labels)
    return re.compile(rf"\b(?:{alternatives})")


_NATIONS = {nation: frozenset(forms) for nation, forms in load("nations").items()}
_STATE = re.compile(r"^(?:the |kingdom of |republic of |people s republic of |state of |empire of )+")
_DEMONYM = re.compile(r"(?:ese|ish|ian|an|ic|i)$")
_COUNTRIES = word_list("countries")
_LONGEST_NATION = 200  # characters; what is longer is none, and stands but for itself
_LISTED = frozenset(_NATIONS).union(*_NATIONS.values())


@lru_cache(maxsize=4096)
def nation_pattern(nation: str) -> re.Pattern[str]:
    """A pattern for the words that say a nation: its name, its demonyms, or a word with its stem.

    ``nation`` is cleaned text: a country or a demonym. A word that the vocabulary lists for another
    nation is none of this one ("australian" for "austria").

    >>> [bool(nation_pattern("kelvia").fullmatch(w)) for w in ("kelvia", "kelvian", "keld")]
    [True, True, False]
    """
    if len(nation) > _LONGEST_NATION:
        return re.compile(rf"(?<!\w){re.escape(nation)}(?!\w)")
    name = former_names(_STATE.sub("", nation))
    forms = {nation, name} | _NATIONS.get(name, frozenset())
    for nation_name, demonyms in _NATIONS.items():
        if name in demonyms:
            forms |= {nation_name} | demonyms
    stem = _DEMONYM.sub("", name)
    if stem == name or len(stem) < 4:
        # "austria" keeps its i: "austr" would begin "australia" too.
        stem = name[: max(4, len(name) - (1 if name.endswith("ia") else 2))]
    foreign = sorted(word for word in _LISTED - forms if word.startswith(stem))
    not_foreign = rf"(?!(?:{'|'.join(map(re.escape, foreign))})(?!\w))" if foreign else ""
    words = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
    return re.compile(rf"(?<!\w)(?:{words}|{not_foreign}{re.escape(stem)}\w{{0,5}})(?!\w)")


def is_nation(word: str) -> bool:
    """Whether cleaned words are a nation or demonym that the vocabulary lists.

    >>> is_nation("french"), is_nation("democratic")
    (True, False)
    """
    return word in _LISTED


def is_country(word: str) -> bool:
    """Whether cleaned words name a country rather than its people or language.

    >>> is_country("kelvia"), is_country("kelvian"), is_country("french"), is_country("u s")
    (True, False, False, True)
    """
    if word in _NATIONS or word in _COUNTRIES or word.endswith("stan"):
        return True
    return word != former_names(word) or not (_DEMONYM.search(word) or word in _LISTED)


def same_nation(word: str, other_word: str) -> bool:
    """Whether two cleaned words say one nation.

    >>> same_nation("kelvia", "kelvian"), same_nation("niger", "nigeria")
    (True, False)
    """
    if word == other_word:
        return True
    return bool(nation_pattern(word).fullmatch(other_word) or nation_pattern(other_word).fullmatch(word))


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """The triple that a single-hop question asks for; ``inverse`` when it names the tail, not the head."""

    subject: str
    relation: str
    inverse: bool = False


_PATTERNS = tuple(
    (relation, re.compile(pattern.replace("{x}", "(?P<x>.+?)") + r"\s*\??", re.IGNORECASE))
    for relation, entry in _VOCABULARY["relations"].items()
    for pattern in entry.get("asked", ())
)
_MADE = {"directed": "director", "scored": "composer", "produced": "producer", "written": "author"}
_WORK_BY = wording("relations", "work_by", re.IGNORECASE, made="|".join(_MADE))
# A reference to an earlier answer, or words that are capitalised but for particles.
_NAME = wording("relations", "name")


@lru_cache(maxsize=16384)
def parse_question(question: str) -> TriplePattern | None:
    """Parse a single-hop question in plain words; None when its form is not known.

    >>> parse_question("Where was Ana Vorr born?")
    TriplePattern(subject='Ana Vorr', relation='place of birth', inverse=False)
    >>> parse_question("How tall is Ana Vorr?") is None
    True
    """
    text = " ".join(question.split())
    if work := _WORK_BY.fullmatch(text):
        relation = _MADE[work[1].lower()] if work[1] else "cast member"
        return TriplePattern(work["x"] or work["y"], relation, inverse=True)
    for relation, pattern in _PATTERNS:
        match = pattern.fullmatch(text)
        if match and _NAME.fullmatch(match["x"]):
            return TriplePattern(match["x"], relation)
    return None


REACH = 140
"""Characters between a cue and what it governs, at most: about a long clause."""
_DENIER = re.compile(r"n(?:ot|ever|or)\b")
_DENIED = re.compile(r"\b(?:not|never|nor)(?: \w+)? $")
# "The song", "the label": what a sentence tells of, and no word of who made it.
_THE_WORK = wording("relations", "the_work")
_DENIAL = 60  # characters in which it is looked for


class Cue(NamedTuple):
    """A cue in a text; ``denied`` where "not" or its like leads it."""

    start: int
    end: int
    label: str
    denied: bool


@lru_cache(maxsize=4096)
def cues_in(text: str, group: str) -> tuple[Cue, ...]:
    """Every cue of a group in cleaned text, in order; they are looked for once a text.

    >>> [(cue.label, cue.denied) for cue in cues_in("it was not directed by ana", "credit")]
    [('director', True)]
    """
    denies = _DENIER.search(text) is not None

    def is_denied(start: int) -> bool:
        return denies and _DENIED.search(text, max(0, start - _DENIAL), start) is not None

    return tuple(
        Cue(*cue.span(), cue.lastgroup or "", is_denied(cue.start()))
        for cue in cue_pattern(group).finditer(text)
        if group != "credit" or not _is_the_work(text, *cue.span())
    )


def _is_the_work(text: str, start: int, end: int) -> bool:
    if text.startswith((" by ", " of "), end) or text.startswith("recording is by ", start):
        return False
    return _THE_WORK.search(text, max(0, start - len("was this record ")), end) is not None


def cues_between(text: str, group: str, low: int, high: int) -> tuple[Cue, ...]:
    """The cues of a group that stand within two offsets."""
    cues = cues_in(text, group)
    first = bisect_left(cues, low, key=itemgetter(0))
    return cues[first : bisect_right(cues, high, lo=first, key=itemgetter(1))]


def has_brackets_closed(text: str, cue: Cue, start: int) -> bool:
    """Whether no bracket that a cue stands in ends before a span."""
    between = text[cue.end : start]
    return between.count(")") <= between.count("(")
