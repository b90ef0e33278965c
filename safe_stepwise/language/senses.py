"""Finds cues in a text that express how two names are related: the vocabulary of senses (``vocabulary/senses.yaml``).

A *cue* is wording in a text that expresses a *sense* (a kind of relation); its *form* tells which end of the relation
(head or tail) follows it. A relation's *meaning* lists the senses that express it.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from safe_stepwise.language.text import overlaps
from safe_stepwise.language.vocabulary import load

Form = Literal["to_tail", "to_head", "nouns", "both"]
Kind = Literal["name", "place", "nation", "date", "text"]


class SenseCue(NamedTuple):
    """A cue in cleaned text (`reading.clean`); ``form`` tells how it joins the two ends of its sense."""

    start: int
    end: int
    sense: str
    form: Form


@dataclass(frozen=True, slots=True)
class Meaning:
    """The senses that express a relation in its direction, and those (``turned``) that express it in reverse."""

    kind: Kind
    senses: frozenset[str]
    turned: frozenset[str] = frozenset()
    single: bool = False
    """Whether a head has only one value."""
    of_person: bool = False
    """Whether the head is a person."""


# "directed (?! by)" must match "directed bye": only whole words exclude a match.
_EXCLUDED = re.compile(r"\(\?!([^()]*)\)")
_EXCLUDED_WORDS = r"(?!(?:\1)\\b)"
_GROUP = re.compile(r"\(\?:((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)")
_ALTERNATIVE = re.compile(r"\|(?![^(]*\))")
_NOT_LETTER = re.compile(r"\W")
_LETTERS = re.compile(r"(?:[a-z ](?![?*{]))*")


def _read_openings(wording: str) -> Iterator[str]:
    """Yield the beginnings that matches of a wording have; "" if they may begin with any letter.

    >>> list(_read_openings("(?:co )?(?:wrote|direct(?:ed|s)) by"))
    ['co ', 'wrote', 'direct']
    """
    if not (group := _GROUP.match(wording)):
        yield _LETTERS.match(wording)[0]  # type: ignore[index]
        return
    for alternative in _ALTERNATIVE.split(group[1]):
        yield from _read_openings(alternative)
    if wording[group.end() :][:1] in ("?", "*"):
        yield from _read_openings(wording[group.end() + 1 :])


@lru_cache(maxsize=1)
def _compile_wordings() -> tuple[list[tuple[str, Form, re.Pattern[str]]], Mapping[str, list[int]]]:
    """Return the pattern of each wording, and the patterns' numbers by the letters with which matches begin."""
    # One pattern for each wording: in an alternation a short one would hide a longer one.
    patterns: list[tuple[str, Form, re.Pattern[str]]] = []
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for sense, entry in load("senses")["senses"].items():
        for form, wordings in entry.items():
            for wording in wordings:
                for opening in _read_openings(wording):
                    numbers[f" {opening}"].append(len(patterns))
                words = _EXCLUDED.sub(_EXCLUDED_WORDS, wording)
                patterns.append((sense, form, re.compile(rf"(?<!\w)(?:{words})(?!\w)")))
    return patterns, numbers


@lru_cache(maxsize=8192)
def sense_cues(text: str, names: tuple[tuple[int, int], ...] = ()) -> tuple[SenseCue, ...]:
    """Return the cues in cleaned text, in order, except those inside a longer cue or a name (given by spans).

    >>> [(cue.sense, cue.form) for cue in sense_cues("dune rain was directed by ana vorr")]
    [('director', 'to_tail')]
    """
    cues = [cue for cue in _find_cues(text) if not any(overlaps(cue[:2], name) for name in names)]
    spans = {cue[:2] for cue in cues}

    def is_longest(start: int, end: int) -> bool:
        return not any(low <= start and end <= high and (low, high) != (start, end) for low, high in spans)

    return tuple(cue for cue in cues if is_longest(*cue[:2]))


@lru_cache(maxsize=8192)
def _find_cues(text: str) -> tuple[SenseCue, ...]:
    patterns, numbers = _compile_wordings()
    words = f" {_NOT_LETTER.sub(' ', text)}"
    near = {number for opening in numbers if opening in words for number in numbers[opening]}
    return tuple(sorted({
        SenseCue(*match.span(), sense, form)
        for sense, form, pattern in map(patterns.__getitem__, near)
        for match in pattern.finditer(text)
        if match.end() > match.start()
    }))  # fmt: skip


@lru_cache(maxsize=1024)
def meaning_of(relation: str) -> Meaning | None:
    """Return the meaning of a relation; None if the vocabulary lacks it.

    >>> meaning_of("directed_by").kind, meaning_of("is fond of") is None
    ('name', True)
    """
    entry = load("senses")["relations"].get(relation.replace("_", " ").strip().lower())
    if entry is None:
        return None
    senses = frozenset(sense for sense in entry["says"] if not sense.startswith("-"))
    turned = frozenset(sense[1:] for sense in entry["says"] if sense.startswith("-"))
    return Meaning(entry["kind"], senses, turned, entry.get("single", False), entry.get("of", "") == "person")


def senses_of(relation: str) -> frozenset[str]:
    """Return the senses that express a relation in either direction; none if the vocabulary lacks it."""
    meaning = meaning_of(relation)
    return meaning.senses | meaning.turned if meaning else frozenset()


class Expression(NamedTuple):
    """A sense of a verb or noun, and the end (head, tail, both) that each role names; role "" is any other."""

    sense: str
    ends: Mapping[str, str]

    def end_of(self, role: str) -> str:
        """Return the end that a role names."""
        return self.ends.get(role) or self.ends[""]


def express(cue: SenseCue, roles: Iterable[str], *, is_noun: bool, is_passive: bool) -> Expression:
    """Return the sense of a cue at a verb or noun with some roles (`syntax.Predication`), and its ends by role.

    >>> cue = sense_cues("dune rain was directed by ana vorr")[0]
    >>> express(cue, ("obj", "subj"), is_noun=False, is_passive=True).ends
    {'obj': 'head', '': 'tail'}
    """
    sense = _INVERSE.get(cue.sense, cue.sense)
    if cue.form == "both":
        return Expression(sense, {"": "both"})
    turned = cue.form == "to_head"
    if not is_noun:
        ends = {"obj" if is_passive else "subj": "head", "": "tail"}
    elif cue.form == "nouns" or "is" not in roles:
        ends, turned = {"of": "head", "for": "head", "behind": "head", "": "tail"}, False
    else:
        ends = {"is": "head", "": "tail"}
    if turned != (cue.sense in _INVERSE):
        ends = {role: "tail" if end == "head" else "head" for role, end in ends.items()}
    return Expression(sense, ends)


_INVERSE: Mapping[str, str] = load("senses")["inverse"]
_ALIKE = {general: frozenset(senses.split()) for general, senses in load("senses")["alike"].items()}
SINGLE = frozenset(load("senses")["single"])
"""Senses for which a text names every tail of a head: nobody else is one."""


def are_alike(sense: str, other_sense: str) -> bool:
    """Whether two senses are the same, or one is more general than the other.

    >>> are_alike("father", "parent"), are_alike("father", "mother")
    (True, False)
    """
    return sense == other_sense or other_sense in _ALIKE.get(sense, ()) or sense in _ALIKE.get(other_sense, ())
