"""A passage as text to search: cleaned, its life spans spelled out, its sentences kept track of."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import accumulate

from safe_stepwise.language.lifespans import spell_out_life
from safe_stepwise.language.text import strip_diacritics
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.records import Passage

_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
)
_LOST_DASH = re.compile(rf"(\d{{4}})(?=\d{{1,2}} {_MONTH}|[a-z]{{3}})")
_OPENERS = word_list("openers")
CAPITAL = r"[A-ZÀ-ÖØ-ÞŠŽČŁŚ]"
"""A capital letter, as a character class."""

Span = tuple[int, int]
"""Start and end offsets in a cleaned text."""


@dataclass(frozen=True, slots=True)
class Text:
    """A passage as one cleaned string, with the offset at which each sentence starts."""

    title: str
    clean: str
    starts: tuple[int, ...]
    full_names: frozenset[str] = frozenset()
    """Pairs of capitalised words, cleaned: whose surname a word is where a given name leads it."""

    def sentence_at(self, offset: int) -> int:
        """Index (from 0) of the sentence that holds ``offset``."""
        return max(0, bisect_right(self.starts, offset) - 1)

    def sentence_span(self, offset: int) -> tuple[int, int]:
        """Start and end of that sentence; a sentence cut at a comma by the source is rejoined."""
        end = self.clean.find(" . ", offset)
        start = self.clean.rfind(" . ", 0, offset)
        return (0 if start < 0 else start + 3), (len(self.clean) if end < 0 else end)


@lru_cache(maxsize=16384)
def clean(text: str) -> str:
    """Lower case, no diacritics, no quotes; commas, brackets and dashes as words of their own.

    >>> clean('Élan Vorr( born 3 May 1901 – d. 1970), "the Elder"')
    'elan vorr ( born 3 may 1901 -- d 1970 ) , the elder'
    """
    text = strip_diacritics(re.sub(r"\s*[–—−]\s*|\s-\s", " ~~ ", text)).lower()
    text = re.sub(r"'s\b|'(?=\s|$)", " 's ", text)
    text = re.sub(r"[^\w\s,;:()~'.]|(?<![\w])'(?!s\b)", " ", text).replace("~~", "--")
    text = re.sub(r"\.(?=\w)", " ", text).replace(".", "")
    text = re.sub(r"([,;:()])", r" \1 ", text)
    text = re.sub(r"(?<=\w)'(?=\w)", "", text)
    return _LOST_DASH.sub(r"\1 -- ", " ".join(text.split()))


@lru_cache(maxsize=8192)
def read(passage: Passage) -> Text:
    """The cleaned text of a passage, sentences closed by `` . ``.

    Life spans are spelled out: ``( 1901 -- 1970 )`` reads ``( born 1901 -- died 1970 )``, so that
    one set of cues covers both ways of writing.
    """
    parts = [clean(sentence) for sentence in passage.sentences]
    marks = [" . " if _CLOSED.search(sentence) else " " for sentence in passage.sentences]
    starts = accumulate((len(p) + len(m) for p, m in zip(parts, marks, strict=True)), initial=1)
    whole = " " + "".join(p + m for p, m in zip(parts, marks, strict=True))
    spelled = spell_out_life(whole)
    return Text(
        passage.title,
        spelled,
        tuple(_follow(list(starts)[:-1], whole, spelled)),
        frozenset(pair for sentence in passage.sentences for pair in _full_names(sentence)),
    )


def _follow(starts: list[int], old: str, new: str) -> list[int]:
    """Where the words at ``starts`` of ``old`` stand in ``new``, in which a stretch is reworded."""
    if old == new:
        return starts
    same = SequenceMatcher(None, old.split(" "), new.split(" "), autojunk=False)
    words = {
        block.a + i: block.b + i for block in same.get_matching_blocks() for i in range(block.size)
    }
    offsets = list(accumulate((len(word) + 1 for word in new.split(" ")), initial=0))
    places = []
    for start in starts:
        number = old.count(" ", 0, start)
        kept = next((words[n] for n in range(number, len(words) + number) if n in words), None)
        places.append(min(len(new), offsets[kept] if kept is not None else len(new)))
    return places


_PAIR = re.compile(rf"(?=\b({CAPITAL}[\w'’.-]*) ({CAPITAL}[\w'’-]+))")


def _full_names(sentence: str) -> Iterator[str]:
    for match in _PAIR.finditer(sentence):
        given = clean(match[1])
        if given not in _OPENERS:
            yield f"{given} {clean(match[2])}"


_CLOSED = re.compile(r"""(?<![\s(][a-z])\.\s*$|[!?"]\s*$|\.\)\s*$""")
