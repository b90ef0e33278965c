"""Turns a passage into text to search: cleaned, with its life spans spelled out and its sentences' offsets."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from itertools import accumulate, chain

from safe_stepwise.language.text import CAPITAL, MONTHS, Span, dates_in, fold, strip_diacritics
from safe_stepwise.language.vocabulary import word_list, wording
from safe_stepwise.records import Passage

_LOST_DASH = re.compile(rf"(?i)\d{{4}}(?=\d{{1,2}} (?:{'|'.join(MONTHS)})|[a-z]{{3}})")
_DASH = re.compile(r"[–—−]\s*+|\s-\s")
# "Visva - Bharati": some sources write hyphens so; before a month it separates the years of a life.
_SPACED_HYPHEN = re.compile(rf"(?i)(?<=[^\W\d]) - (?=(?!(?:{'|'.join(MONTHS)}|born|died|c|ca|circa)\b)[^\W\d])")
# "London- 29 September", "1894- Jerusalem": a life's dash, written as a hyphen.
_GLUED_HYPHEN = re.compile(
    rf"(?i)(?<=[^\W\d])-(?= \d{{1,4}}\b| (?:{'|'.join(m[:3] for m in MONTHS)})[a-z]* \d)|(?<=\d{{4}})-(?= [^\W\d])"
)
# "b. 3 May 1901, Oru", "m. (1925) Ana Vorr": abbreviations of reference works.
_ABBREVIATIONS = {
    "b": "born", "d": "died", "m": "married", "educ": "educated at", "est": "established",
    "cap": "capital", "bur": "buried", "dir": "directed by",
}  # fmt: skip
_ABBREVIATION = wording("reading", "short")
_POSSESSIVE = re.compile(r"'s\b|'(?=\s|$)")
_DROPPED_MARK = re.compile(r"[^\w\s,;:()~.](?:(?<!')|(?<!\w')(?!s\b))")
_POINT = re.compile(r"\.(?=\w)")
_MARKS = ",;:()"
_APOSTROPHE = re.compile(r"'(?<=\w')(?=\w)")
OPENERS = word_list("openers")
"""Cleaned words that are not names when they open a sentence with a capital."""


@dataclass(frozen=True)
class Text:
    """A passage as one cleaned string (``clean``), with the offset at which each of its sentences starts."""

    title: str
    clean: str
    starts: tuple[int, ...] = field(hash=False)
    stops: tuple[int, ...] = field(default=(), hash=False)
    """Offsets of the `` . `` that close sentences."""
    sentences: tuple[str, ...] = field(default=(), hash=False)
    """The passage's sentences after `fold`."""

    @cached_property
    def full_names(self) -> Mapping[str, frozenset[str]]:
        """The full names of each surname: cleaned pairs of capitalised words by their last word."""
        pairs: dict[str, set[str]] = defaultdict(set)
        for match in chain.from_iterable(map(_PAIR.finditer, self.sentences)):
            if (given_name := clean(match[1])) not in OPENERS:
                pair = f"{given_name} {clean(match[2])}"
                pairs[pair.rpartition(" ")[2]].add(pair)
        return {last: frozenset(pairs_of_last) for last, pairs_of_last in pairs.items()}

    def sentence_at(self, offset: int) -> int:
        """Return the index (from 0) of the sentence at an offset."""
        return max(0, bisect_right(self.starts, offset) - 1)

    def sentence_span(self, offset: int) -> tuple[int, int]:
        """Return the span of the sentence at an offset, rejoined if the source cut it at a comma."""
        after = bisect_left(self.stops, offset)
        before = bisect_right(self.stops, offset - len(_STOP)) - 1
        start = self.stops[before] + len(_STOP) if before >= 0 else 0
        return start, self.stops[after] if after < len(self.stops) else len(self.clean)


@lru_cache(maxsize=16384)
def clean(text: str) -> str:
    """Clean a text: lower case, no diacritics, no quotes; commas, brackets and dashes become separate words.

    >>> clean('Élan Vorr( born 3 May 1901 – d. 1970), "the Elder"')
    'elan vorr ( born 3 may 1901 -- died 1970 ) , the elder'
    """
    return _clean_folded(fold(text)).lower()


def _clean_folded(text: str) -> str:
    """Clean a folded text, but keep its capitals."""
    if text.isascii() and text.replace(" ", "").isalpha():  # a short cut for most names
        return " ".join(text.split())
    if "." in text:
        text = _ABBREVIATION.sub(lambda short: _ABBREVIATIONS[short[1].lower()] + " ", text)
    if " - " in text:
        text = _SPACED_HYPHEN.sub("-", text)
    text = text.replace("-winning", " winning")
    if "- " in text:
        text = _GLUED_HYPHEN.sub("–", text)
    text = strip_diacritics(_DASH.sub(" ~~ ", text))
    if "'" in text:
        text = _POSSESSIVE.sub(" 's ", text.replace("'S", "'s"))
    text = _DROPPED_MARK.sub(" ", text).replace("~~", "--")
    if "." in text:
        text = _POINT.sub(" ", text).replace(".", "")
    for mark in _MARKS:
        if mark in text:
            text = text.replace(mark, f" {mark} ")
    if "'" in text:
        text = _APOSTROPHE.sub("", text)
    return _LOST_DASH.sub(lambda year: f"{year[0]} -- ", " ".join(text.split()))


@lru_cache(maxsize=4096)
def read(passage: Passage) -> Text:
    """Clean a passage; its sentences end with `` . ``.

    Life spans are spelled out, so that one set of cues is enough: ``( 1901 -- 1970 )`` becomes ``( born 1901 -- died
    1970 )``.
    """
    sentences = tuple(map(fold, passage.sentences))
    texts = [_STOP.join(map(_clean_folded, _split_at_stops(sentence))).lower() for sentence in sentences]
    marks = [_STOP if _is_closed(sentence) else " " for sentence in sentences]
    starts = accumulate((len(p) + len(m) for p, m in zip(texts, marks, strict=True)), initial=1)
    joined = " " + "".join(p + m for p, m in zip(texts, marks, strict=True))
    (low, high), marked = _spell_out_life(joined)
    spelled = joined[:low] + marked + joined[high:]
    return Text(
        passage.title,
        spelled,
        tuple(_shift_starts(list(starts)[:-1], (low, high), joined[low:high], marked)),
        tuple(stop.start() for stop in _STOPS.finditer(spelled)),
        sentences,
    )


def _shift_starts(starts: list[int], stretch: Span, old: str, new: str) -> Iterator[int]:
    """Yield the new offsets of the words at ``starts`` after a stretch of the text is reworded."""
    low, high = stretch
    before, after = bisect_left(starts, low), bisect_left(starts, high)
    if before == after:  # nearly always: no start lies within, so nothing has to be aligned
        yield from starts[:before]
        yield from (start + len(new) - len(old) for start in starts[after:])
        return
    old_words, new_words = old.split(" "), new.split(" ")
    blocks = SequenceMatcher(None, old_words, new_words, autojunk=False).get_matching_blocks()
    new_numbers = {block.a + i: block.b + i for block in blocks for i in range(block.size)}
    offsets = list(accumulate((len(word) + 1 for word in new_words), initial=0))
    for start in starts:
        if start < low:
            yield start
        elif start >= high:
            yield start + len(new) - len(old)
        else:
            number = old.count(" ", 0, start - low)
            following = (new_numbers[n] for n in range(number, len(old_words)) if n in new_numbers)
            yield low + min(len(new), offsets[next(following, len(new_words))])


# Words are bounded: an endless one would be tried again at each of its capitals.
_PAIR = re.compile(rf"(?=\b({CAPITAL}[\w'’.-]{{0,80}}+) ({CAPITAL}[\w'’-]{{1,80}}))")


_STOP = " . "
_STOPS = re.compile(r"(?= \. )")
_CLOSED = re.compile(r"""(?<![\s(][a-z])\.$|[!?"]$|\.\)$""")
_ENDING_CHARS = 9  # characters at the end of a sentence that show whether it is complete
# A full stop inside a source's sentence: after a word, before a capital letter.
_INNER_STOP = re.compile(r"(?<=[^\W\d_]{4}\.) (?=[A-Z][a-z])|(?<=[)\d]\.) (?=[A-Z][a-z])")
_ABBREVIATED = re.compile(rf"(?:^|[\s(])(?:{'|'.join(word_list('abbreviations'))}|[A-Z])\.$", re.IGNORECASE)


def _split_at_stops(sentence: str) -> Iterator[str]:
    """Split a source's sentence at the full stops inside it, except after abbreviations."""
    if sentence.find(". ") < 0:
        yield sentence
        return
    pending = ""
    for piece in _INNER_STOP.split(sentence):
        pending = f"{pending} {piece}" if pending else piece
        if not _ABBREVIATED.search(pending[-_ENDING_CHARS:]):
            yield pending
            pending = ""
    if pending:
        yield pending


def _is_closed(sentence: str) -> bool:
    """Whether a sentence is complete, not cut at an abbreviation or within brackets."""
    end = sentence.rstrip()[-_ENDING_CHARS:]
    is_ended = _CLOSED.search(end) is not None and not _ABBREVIATED.search(end)
    return is_ended and sentence.count("(") <= sentence.count(")")


_MAX_LIFE_OFFSET = 260
_LIFE_BRACKETS = re.compile(r"[(;] ([^()]*(?:\([^()]*\)[^()]*)*)\)")
_UNKNOWN_BIRTH = re.compile(r"^-- ")
_NOT_A_LIFE = wording("reading", "not_a_life")
_MAIN_VERB = re.compile(r"\b(?:is|was|are|were|became|served|reigned|held)\b")
_NO_PERSON = wording("reading", "no_person", no_persons="|".join(word_list("no_persons")))
_EVENT = re.compile(r"\b(?:born|died)\b")
_BARE_YEARS = re.compile(r"(?<=^\( )(\d{4}) (\d{4})(?= \)$)")
_BORN = re.compile(r"\bborn (?:c |circa |about |around )?$")
_CIRCA = re.compile(r"\b(?:c|ca|circa|about|around) $")
_SHORT_EVENTS = (
    (re.compile(r"(?<=[(;-] )d (?=\d|c |circa|[a-z]+ \d)"), "died "),
    (re.compile(r"(?<=[(;] )b (?=\d|c |circa|[a-z]+ \d)"), "born "),
)


def _spell_out_life(text: str) -> tuple[Span, str]:
    """Return the span of the brackets with a life's years, and their new text; an empty span if there are none.

    ``( 1901 -- 1970 )`` becomes ``( born 1901 -- died 1970 )``. Words are added and ``b`` and ``d`` spelled out;
    nothing is removed.
    """
    for opening in _LIFE_BRACKETS.finditer(text, 0, _MAX_LIFE_OFFSET):
        if _MAIN_VERB.search(text, 0, opening.start()) or _NO_PERSON.match(text, opening.end()):
            break
        inside = opening[0]
        for pattern, event in _SHORT_EVENTS:
            inside = pattern.sub(event, inside)
        inside = _BARE_YEARS.sub(lambda years: f"{years[1]} -- {years[2]}", inside)
        marked = f"{inside[0]} {_spell_out_years(inside[2:-1])})"
        if marked != opening[0]:
            return opening.span(), marked
    return (0, 0), ""


def _spell_out_years(inside: str) -> str:
    """Add "born" and "died" to the text in a life's brackets; a text that is not a life is returned as it is."""
    if _NOT_A_LIFE.search(inside):
        return inside
    inside = _UNKNOWN_BIRTH.sub("born -- ", inside)
    full = [d for d in dates_in(inside) if d.year]
    if " -- " not in inside and len(_EVENT.findall(inside)) > 1:
        return inside
    if " -- " not in inside and inside.count(" ; ") == 1 and len(full) == 2 and not _EVENT.search(inside):
        birth, _, death = inside.partition(" ; ")
        if full[0].end <= len(birth) < full[1].start:  # "Florence, 1820; Vienna, 1892"
            inside = f"{birth} -- {death}"
    if " -- " not in inside and len(full) == 2 and all(d.day for d in full):
        inside = f"{inside[: full[1].start]} -- {inside[full[1].start :]}"
    elif " -- " not in inside and len(full) == 1 and full[0].day and not _EVENT.search(inside):
        return f"born {inside}"
    birth, dash, death = inside.partition(" -- ")
    if not dash or not any(date.year for date in dates_in(inside)):
        return inside
    first = next((d for d in dates_in(birth) if d.year), None)
    if first and not _BORN.search(birth, 0, first.start):
        about = _CIRCA.search(birth, 0, first.start)
        place = about.start() if about else first.start
        birth = f"{birth[:place]}born {birth[place:]}"
    if not birth.startswith("born "):
        birth = f"born {birth}"
    return f"{birth} -- {death if death.startswith('died ') else 'died ' + death}"
