"""What a wording says of two names, and which way: the vocabulary of senses.

The data stands in ``vocabulary/senses.yaml``. A *cue* is a wording in a text with the sense that it
has; its form tells which end of the sense follows it.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from safe_stepwise.language.reading import Span
from safe_stepwise.language.vocabulary import load

Form = Literal["to_tail", "to_head", "nouns", "both"]
Kind = Literal["name", "place", "nation", "date", "text"]


class SenseCue(NamedTuple):
    """A wording in cleaned text; ``form`` says how it joins the two ends of its sense."""

    start: int
    end: int
    sense: str
    form: Form


@dataclass(frozen=True, slots=True)
class Meaning:
    """How a relation of a graph is said: senses that run with it, and such as run against it."""

    kind: Kind
    senses: frozenset[str]
    turned: frozenset[str] = frozenset()
    single: bool = False
    """Whether a head has one value only."""
    of_person: bool = False
    """Whether the head is a person."""


# "directed (?! by)" is to let "directed bye" pass: what must not follow are whole words.
_AHEAD = re.compile(r"\(\?!([^()]*)\)")
_WORDS = r"(?!(?:\1)\\b)"


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[str, Form, re.Pattern[str]], ...]:
    # One pattern for each wording: in an alternation a short one would hide a longer one.
    return tuple(
        (sense, form, re.compile(rf"(?<!\w)(?:{_AHEAD.sub(_WORDS, wording)})(?!\w)"))
        for sense, entry in load("senses")["senses"].items()
        for form, wordings in entry.items()
        for wording in wordings
    )


@lru_cache(maxsize=8192)
def sense_cues(text: str, names: tuple[Span, ...] = ()) -> tuple[SenseCue, ...]:
    """Every cue in cleaned text, in order; one within a longer one, or within a name, is none.

    >>> [(cue.sense, cue.form) for cue in sense_cues("dune rain was directed by ana vorr")]
    [('director', 'to_tail')]
    """
    cues = [
        cue for cue in _every_cue(text)
        if not any(cue.start < b and a < cue.end for a, b in names)
    ]  # fmt: skip
    spans = {(cue.start, cue.end) for cue in cues}
    return tuple(
        cue
        for cue in cues
        if not any(a <= cue.start and cue.end <= b and (a, b) != (cue.start, cue.end) for a, b in spans)
    )


@lru_cache(maxsize=8192)
def _every_cue(text: str) -> tuple[SenseCue, ...]:
    return tuple(sorted({
        SenseCue(*match.span(), sense, form)
        for sense, form, pattern in _patterns()
        for match in pattern.finditer(text)
        if match.end() > match.start()
    }))  # fmt: skip


@lru_cache(maxsize=1024)
def meaning_of(relation: str) -> Meaning | None:
    """How a relation is said, or None for one that the vocabulary does not have.

    >>> meaning_of("directed_by").kind, meaning_of("is fond of") is None
    ('name', True)
    """
    entry = load("senses")["relations"].get(relation.replace("_", " ").strip().lower())
    if entry is None:
        return None
    senses = entry["says"]
    return Meaning(
        entry["kind"],
        frozenset(sense for sense in senses if not sense.startswith("-")),
        frozenset(sense[1:] for sense in senses if sense.startswith("-")),
        entry.get("single", False),
        entry.get("of", "") == "person",
    )
