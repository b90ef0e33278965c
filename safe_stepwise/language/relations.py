"""Knows the vocabulary of relations and nations (``vocabulary/relations.yaml``, ``vocabulary/nations.yaml``).

Four topics: relations with their kind of value; nations and their demonyms; single-hop questions, parsed into the
triple that they ask for; and cues in a text. A *cue* is wording that expresses a relation ("directed by", "son of").
Cues of one *group* compete for a value. All functions but `parse_question` expect cleaned text (`reading.clean`):
lower case, no diacritics, punctuation between spaces. To add a relation, add an entry to the vocabulary."""

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from safe_stepwise.language.text import present_name
from safe_stepwise.language.vocabulary import load, word_list, wording

ValueKind = Literal["date", "place", "nation", "name"]
_VOCABULARY = load("relations")


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation, its kind of value and its cues.

    A relation without a ``group`` has no cues; any wording may express it. A ``functional`` relation has one value
    for each head, so that another stated value contradicts it.
    """

    name: str
    kind: ValueKind
    group: str = ""
    cues: frozenset[str] = frozenset()
    functional: bool = False
    loose_cues: frozenset[str] = frozenset()
    """Further cues that a fair reader may accept: a value with one of them is not noise."""
    allows_several: bool = False
    """Whether a sentence may give several values, joined by "and"."""
    bracketed: bool = False
    """Whether an article may put the value in brackets after its subject's name, without any cue."""
    has_noun_form: bool = True
    """Whether "the … of somebody" can express it, as "the spouse of Ana" does."""


def _relation(name: str, entry: dict[str, Any]) -> Relation:
    sets = {key: frozenset(cues) for key, cues in entry.items() if key in ("cues", "loose_cues")}
    return Relation(name, **{key: value for key, value in entry.items() if key != "asked"} | sets)


RELATIONS = {name: _relation(name, entry) for name, entry in _VOCABULARY["relations"].items()}


@lru_cache(maxsize=32)
def cue_pattern(group: str) -> re.Pattern[str]:
    """Return one pattern for all cues of a group; a match's ``lastgroup`` is the cue's label."""
    labels = _VOCABULARY["cues"][group].items()
    # The boundary comes before all alternatives, so that within a word nothing else is tried.
    alternatives = "|".join(rf"(?P<{label}>(?:{'|'.join(cues)})\b)" for label, cues in labels)
    return re.compile(rf"\b(?:{alternatives})")


_NATIONS = {nation: frozenset(forms) for nation, forms in load("nations").items()}
_STATE_PREFIX = re.compile(r"^(?:the |kingdom of |republic of |people s republic of |state of |empire of )+")
_DEMONYM = re.compile(r"(?:ese|ish|ian|an|ic|i)$")
_COUNTRIES = word_list("countries")
_MAX_NATION_CHARS = 200
_NATION_WORDS = frozenset(_NATIONS).union(*_NATIONS.values())


@lru_cache(maxsize=4096)
def nation_pattern(nation: str) -> re.Pattern[str]:
    """Return a pattern for the words that express a nation: its name, its demonyms, or a word with its stem.

    ``nation`` is a country or a demonym. Words that the vocabulary lists for another nation don't match: "australian"
    begins like "austria". A text of over 200 characters is not a nation and matches only itself.

    >>> [bool(nation_pattern("kelvia").fullmatch(w)) for w in ("kelvia", "kelvian", "keld")]
    [True, True, False]
    """
    if len(nation) > _MAX_NATION_CHARS:
        return re.compile(rf"(?<!\w){re.escape(nation)}(?!\w)")
    name = present_name(_STATE_PREFIX.sub("", nation))
    forms = {nation, name} | _NATIONS.get(name, frozenset())
    for nation_name, demonyms in _NATIONS.items():
        if name in demonyms:
            forms |= {nation_name} | demonyms
    stem = _DEMONYM.sub("", name)
    if stem == name or len(stem) < 4:
        # "austria" keeps its i: "austr" would begin "australia" too.
        stem = name[: max(4, len(name) - (1 if name.endswith("ia") else 2))]
    foreign = sorted(word for word in _NATION_WORDS - forms if word.startswith(stem))
    not_foreign = rf"(?!(?:{'|'.join(map(re.escape, foreign))})(?!\w))" if foreign else ""
    words = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
    return re.compile(rf"(?<!\w)(?:{words}|{not_foreign}{re.escape(stem)}\w{{0,5}})(?!\w)")


def is_nation(word: str) -> bool:
    """Whether the vocabulary lists a word as a nation or demonym.

    >>> is_nation("french"), is_nation("democratic")
    (True, False)
    """
    return word in _NATION_WORDS


def is_country(word: str) -> bool:
    """Whether a word names a country, and not its people or language.

    >>> is_country("kelvia"), is_country("kelvian"), is_country("french"), is_country("u s")
    (True, False, False, True)
    """
    if word in _NATIONS or word in _COUNTRIES or word.endswith("stan"):
        return True
    return word != present_name(word) or not (_DEMONYM.search(word) or word in _NATION_WORDS)


def same_nation(word: str, other_word: str) -> bool:
    """Whether two words express the same nation.

    >>> same_nation("kelvia", "kelvian"), same_nation("niger", "nigeria")
    (True, False)
    """
    if word == other_word:
        return True
    return bool(nation_pattern(word).fullmatch(other_word) or nation_pattern(other_word).fullmatch(word))


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """The triple that a single-hop question asks for; ``inverse`` if ``subject`` is its tail, not its head."""

    subject: str
    relation: str
    inverse: bool = False


_PATTERNS = tuple(
    (relation, re.compile(pattern.replace("{x}", "(?P<x>.+?)") + r"\s*\??", re.IGNORECASE))
    for relation, entry in _VOCABULARY["relations"].items()
    for pattern in entry.get("asked", ())
)
_ROLE_OF_VERB = {"directed": "director", "scored": "composer", "produced": "producer", "written": "author"}
_WORK_BY = wording("relations", "work_by", re.IGNORECASE, made="|".join(_ROLE_OF_VERB))
# A reference to an earlier answer, or words that are capitalised except for particles.
_NAME = wording("relations", "name")


@lru_cache(maxsize=16384)
def parse_question(question: str) -> TriplePattern | None:
    """Parse a single-hop question (not cleaned) into the triple that it asks for; None if its form is unknown.

    >>> parse_question("Where was Ana Vorr born?")
    TriplePattern(subject='Ana Vorr', relation='place of birth', inverse=False)
    """
    text = " ".join(question.split())
    if work := _WORK_BY.fullmatch(text):
        relation = _ROLE_OF_VERB[work[1].lower()] if work[1] else "cast member"
        return TriplePattern(work["x"] or work["y"], relation, inverse=True)
    for relation, pattern in _PATTERNS:
        match = pattern.fullmatch(text)
        if match and _NAME.fullmatch(match["x"]):
            return TriplePattern(match["x"], relation)
    return None


REACH = 140
"""Maximum characters between a cue and the value that it governs: about a long clause."""
_NEGATION = re.compile(r"n(?:ot|ever|or)\b")
_NEGATED_BEFORE = re.compile(r"\b(?:not|never|nor)(?: \w+)? $")
# "The song", "the label": here the noun is what a sentence is about, not a cue for who made it.
_THE_WORK = wording("relations", "the_work")
_MAX_NEGATION_CHARS = 60  # characters before a cue in which a negation is looked for


class Cue(NamedTuple):
    """A cue's span in a text and its label; ``denied`` if "not", "never" or "nor" comes right before it."""

    start: int
    end: int
    label: str
    denied: bool


@lru_cache(maxsize=4096)
def cues_in(text: str, group: str) -> tuple[Cue, ...]:
    """Return the cues of a group in a text, in order (cached).

    >>> [(cue.label, cue.denied) for cue in cues_in("it was not directed by ana", "credit")]
    [('director', True)]
    """
    has_negation = _NEGATION.search(text) is not None

    def is_denied(start: int) -> bool:
        return has_negation and _NEGATED_BEFORE.search(text, max(0, start - _MAX_NEGATION_CHARS), start) is not None

    return tuple(
        Cue(*match.span(), match.lastgroup or "", is_denied(match.start()))
        for match in cue_pattern(group).finditer(text)
        if group != "credit" or not _is_the_work(text, *match.span())
    )


def _is_the_work(text: str, start: int, end: int) -> bool:
    """Whether a span is a noun for the work itself ("the song"), and so not a cue for its maker."""
    if text.startswith((" by ", " of "), end) or text.startswith("recording is by ", start):
        return False
    return _THE_WORK.search(text, max(0, start - len("was this record ")), end) is not None


def cues_between(text: str, group: str, low: int, high: int) -> tuple[Cue, ...]:
    """Return the cues of a group that lie between two offsets."""
    cues = cues_in(text, group)
    first = bisect_left(cues, low, key=itemgetter(0))
    return cues[first : bisect_right(cues, high, lo=first, key=itemgetter(1))]


def has_brackets_closed(text: str, cue: Cue, start: int) -> bool:
    """Whether no bracket around a cue closes before the offset ``start``."""
    between = text[cue.end : start]
    return between.count(")") <= between.count("(")
