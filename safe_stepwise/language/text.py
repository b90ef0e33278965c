"""Finds names, dates and numbers in a text, and normalises them for comparison.

Texts are compared after `fold`, which unifies look-alike characters. Texts that are shown, stored or scored stay as
they are; a `TracedText` keeps, for each character, where it comes from."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html.entities import html5
from itertools import filterfalse
from typing import NamedTuple

from safe_stepwise.language.vocabulary import load, word_list, wording

Span = tuple[int, int]
"""Start and end offsets in a text."""
Replacement = str | Callable[[re.Match[str]], str]
CAPITAL = r"[A-ZÀ-ÖØ-ÞŠŽČŁŚ]"
"""A capital letter, as a character class."""
MONTHS = "january february march april may june july august september october november december".split()
LONE_SURROGATE = re.compile("[\\ud800-\\udfff]")
"""Half of a surrogate pair, which no encoding can represent: parsers refuse a text with it."""

_INVISIBLE = (  # soft hyphens, zero-width spaces and joiners, marks of direction, byte order marks
    "\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff"
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
_LOOKALIKES = {
    **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # full width
    **dict.fromkeys("’‘‛ʻʼʽʹˈ′´`ꞌ", "'"),
    **dict.fromkeys("‐‑⁃﹣", "-"),
    **dict.fromkeys("\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))), " "),
    **dict.fromkeys(_INVISIBLE, ""),
}
_LOOKALIKE = re.compile(f"[{re.escape(''.join(_LOOKALIKES))}]")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,30});", re.IGNORECASE)
# A dash is a hyphen between letters; elsewhere it separates years or clauses.
_DASH_IN_WORD = re.compile(r"(?<=[^\W\d_])[–−‒](?=[^\W\d_])")
_MINUS = re.compile("[−‒]")
_ISO_DATE = re.compile(r"(?<!\d)(?<!\d[.-])([0-9]{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(?![\d-])")
_INITIALS: dict[str, str] = load("words")["initials"]
_INITIALS_STARTS = {start for word in _INITIALS for start in (word[:2], f"{word[0]}.", ".".join(word[:2]).lower())}
# Initials: in any case with a point after each; in capitals with a point and a space after each, or without points if
# no capitals are beside them ("us" is a word).
_WRITTEN_INITIALS = re.compile(
    r"(?<![\w.'-])(?:"
    + "|".join(
        rf"(?i:{re.escape('.'.join(word))})\.(?!\w)|{re.escape('. '.join(word))}\.(?! [A-Z]\.)"
        rf"|(?<![A-Z]{{2}} ){word}(?![\w$£€-]| [A-Z]{{2}})"
        for word in sorted(_INITIALS, key=len, reverse=True)
    )
    + ")"
)


@dataclass(frozen=True, slots=True)
class TracedText:
    """A text made from a source; character ``n`` stands for the source's characters ``starts[n]`` to ``ends[n]``."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    @classmethod
    def from_source(cls, source: str) -> TracedText:
        """Make a text that equals its source."""
        return cls(source, range(len(source)), range(1, len(source) + 1))

    def sub(self, pattern: re.Pattern[str], replacement: Replacement) -> TracedText:
        """Replace as `re.sub` does; each character of a replacement stands for the whole match.

        >>> traced = TracedText.from_source("4 &amp; 5").sub(re.compile("&amp;"), "and")
        >>> traced.text, traced.source_span(2, 5), traced.source_span(6, 7)
        ('4 and 5', (2, 7), (8, 9))
        """
        pieces, starts, ends, end = list[str](), list[int](), list[int](), 0
        for match in pattern.finditer(self.text):
            words = match.expand(replacement) if isinstance(replacement, str) else replacement(match)
            start, stop = self.source_span(*match.span())
            pieces += [self.text[end : match.start()], words]
            starts += [*self.starts[end : match.start()], *[start] * len(words)]
            ends += [*self.ends[end : match.start()], *[stop] * len(words)]
            end = match.end()
        if not pieces:
            return self
        pieces.append(self.text[end:])
        return TracedText("".join(pieces), [*starts, *self.starts[end:]], [*ends, *self.ends[end:]])

    def join(self, spans: Iterable[Span]) -> TracedText:
        """Join the parts of the text at some spans."""
        slices = [slice(start, end) for start, end in spans]
        return TracedText(
            "".join(self.text[span] for span in slices),
            [offset for span in slices for offset in self.starts[span]],
            [offset for span in slices for offset in self.ends[span]],
        )

    def source_span(self, start: int, end: int) -> Span:
        """Return the span of the source for a span of the text; an empty one stays empty."""
        if start < end:
            return self.starts[start], self.ends[end - 1]
        place = self.starts[start] if start < len(self.text) else max(self.ends[-1:], default=0)
        return place, place


@lru_cache(maxsize=32768)
def fold(text: str) -> str:
    """Unify HTML entities, look-alike characters, ISO 8601 dates, some initials; remove invisible characters.

    >>> fold("Hawaiʻi&#39;s so\u00adcalled Smith−Jones, born 1917-04-03 in the U.S.")
    "Hawai'i's socalled Smith-Jones, born 3 April 1917 in the USA."
    """
    for concerns, pattern, replacement in _FOLDS:
        if concerns(text):
            text = pattern.sub(replacement, text)
    return text


def fold_traced(source: str) -> TracedText:
    """Fold a text (`fold`) and keep the offsets that its characters come from."""
    text = TracedText.from_source(source)
    for concerns, pattern, replacement in _FOLDS:
        if concerns(text.text):
            text = text.sub(pattern, replacement)
    return text


def _unescape_entity(entity: re.Match[str]) -> str:
    """Decode an HTML entity; an unknown one remains, though `html` would decode its beginning."""
    return html.unescape(entity[0]) if entity[0].startswith("&#") or entity[0][1:] in html5 else entity[0]


def _remove_points(initials: re.Match[str]) -> str:
    """Return initials without points; the last point remains if it may end the sentence."""
    plain = _INITIALS[re.sub("[. ]", "", initials[0]).upper()]
    closes = initials[0].endswith(".") and not initials.string[initials.end() :].strip(" \"')”")
    return f"{plain}." if closes else plain


def _spell_date(date: re.Match[str]) -> str:
    return f"{int(date[3])} {MONTHS[int(date[2]) - 1].title()} {date[1]}"


_FOLDS: tuple[tuple[Callable[[str], bool], re.Pattern[str], Replacement], ...] = (
    (lambda text: "&" in text, _ENTITY, _unescape_entity),
    (lambda text: "`" in text or not text.isascii(), _LOOKALIKE, lambda char: _LOOKALIKES[char[0]]),
    (lambda text: not text.isascii(), _DASH_IN_WORD, "-"),
    (lambda text: not text.isascii(), _MINUS, "–"),
    (lambda text: "-" in text, _ISO_DATE, _spell_date),
    (lambda text: any(start in text for start in _INITIALS_STARTS), _WRITTEN_INITIALS, _remove_points),
)
"""What `fold` replaces, in this order: a quick test whether a text may have it, the pattern, the replacement."""

_MONTH_NUMBERS = {month[:3]: number for number, month in enumerate(MONTHS, 1)}

_MONTH = r"(?P<{}>sept\.?|" + "|".join(f"{m[:3]}(?:{m[3:]})?\\.?" for m in MONTHS) + ")(?!\\w)"
_YEAR = r"(?P<{}>\d{{3,4}})(?!\d)"
_DAY = r"(?P<{}>[0-3]?\d)(?:st|nd|rd|th)?"
# A group's name is its part and the number of the alternative in `_DATE` that has it: m2 is the second one's month.
_FORMS = (("d", _DAY), ("m", _MONTH), ("y", _YEAR))
_PARTS = {f"{part}{n}": form.format(f"{part}{n}") for part, form in _FORMS for n in range(1, 5)}
_DATE = wording("text", "date", re.IGNORECASE, gap=r"\s*+(?:,\s*+)?", **_PARTS)
_DIGIT = re.compile(r"\d")
_BEFORE_CHRIST = re.compile(r"\s*(?:bce?|b\.\s?c\.)(?!\w)", re.IGNORECASE)
_AROUND_DATE = frozenset(("", "c", "ca", "circa", "in", "on", "the", "about", "around", "ad", "bc", "bce"))
_HONORIFIC = re.compile(rf"^(?:(?:the|{'|'.join(word_list('honorifics'))})\b\.?\s+)+(?=\S)", re.IGNORECASE)
_PARENTHESIS = re.compile(r"\([^()]*+\)")
# The lookbehind makes a run of white space be scanned only once.
_QUALIFIER = re.compile(r"(?<!\s)\s*+\(([^()]*+)\)\s*+$")
_NOT_WORD = re.compile(r"[^\w]+")
_NUMBER_WORDS = {word: n for n, word in enumerate(load("words")["numbers"].split())}
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_NUMBER = wording("text", "number", re.IGNORECASE, words="|".join(_NUMBER_WORDS), scales="|".join(_SCALES))
_FORMER_NAMES: dict[str, str] = load("words")["former_names"]
_LETTER_SPELLINGS = {
    "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ß": "ss", "æ": "ae", "Æ": "Ae",
    "Œ": "Oe", "œ": "oe", "Ð": "D", "ð": "d", "Þ": "Th", "þ": "th", "ı": "i", "–": "-", "—": "-"
}  # fmt: skip
_SPELLED_OUT = re.compile(f"[{''.join(_LETTER_SPELLINGS)}]")


class Date(NamedTuple):
    """A date as precisely as it was written (month and day are 0 if absent), and its span in the text.

    Years before Christ are negative; ``year`` is 0 if none was given.
    """

    year: int
    month: int = 0
    day: int = 0
    start: int = 0
    end: int = 0

    def agrees(self, date: Date) -> bool:
        """Whether two dates can be the same day: the fields that both give are equal."""
        return all(a == b or not a or not b for a, b in zip(self[:3], date[:3], strict=True))


@lru_cache(maxsize=32768)
def strip_diacritics(text: str) -> str:
    """Fold a text (`fold`) and remove the diacritics of Latin letters; other scripts stay.

    >>> strip_diacritics("Bjørk Łoś Müller")
    'Bjork Los Muller'
    """
    text = fold(text)
    if text.isascii():
        return text
    plain = _SPELLED_OUT.sub(lambda match: _LETTER_SPELLINGS[match[0]], text)
    if plain.isascii():
        return plain
    # Decomposition may produce look-alikes again, as of "ŉ".
    return fold("".join(filterfalse(unicodedata.combining, unicodedata.normalize("NFKD", plain))))


@lru_cache(maxsize=32768)
def normal_name(name: str) -> str:
    """Normalise a name, so that two spellings of it are equal.

    Case, diacritics, punctuation, a leading article, honorifics and a description in brackets do not count.

    >>> normal_name("Sir Élan Vorr (painter)"), normal_name("The Silent Ford")
    ('elan vorr', 'silent ford')
    """
    plain = strip_diacritics(name)
    bare = _PARENTHESIS.sub("", plain).strip() or plain
    return normal_words(_HONORIFIC.sub("", bare))


def qualifier(name: str) -> str:
    """Return the description in brackets at a name's end, as `normal_words`; else "".

    >>> qualifier("Ors Velt (painter)"), qualifier("Ors Velt")
    ('painter', '')
    """
    match = _QUALIFIER.search(name)
    return normal_words(match[1]) if match else ""


def without_qualifier(name: str) -> str:
    """Remove the brackets at a name's end.

    >>> without_qualifier("Ors Velt (painter)")
    'Ors Velt'
    """
    return _QUALIFIER.sub("", name)


def is_latin(letter: str) -> bool:
    """Whether a letter is of the Latin script.

    >>> [is_latin(letter) for letter in "aé馬"]
    [True, True, False]
    """
    return letter.isascii() or unicodedata.name(letter, "").startswith("LATIN")


@lru_cache(maxsize=32768)
def normal_words(text: str) -> str:
    """Return a text's words in lower case, separated by single spaces, without diacritics or punctuation.

    >>> normal_words("O'Dell's  café, No. 5")
    'odells cafe no 5'
    """
    plain = strip_diacritics(text).lower().replace("'", "")
    return _NOT_WORD.sub(" ", plain).strip()


def has_words(text: str, words: str) -> bool:
    """Whether a text has some words in a row; both are normalised the same way, and only full words count.

    >>> has_words("who led oru", "oru"), has_words("who led orunia", "oru")
    (True, False)
    """
    return f" {words} " in f" {text} "


@lru_cache(maxsize=8192)
def whole_words_pattern(words: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern for exactly these words, not as a part of longer words (cached)."""
    return re.compile(rf"(?<!\w){re.escape(words)}(?!\w)", flags)


def overlaps(span: Span, other_span: Span) -> bool:
    """Whether two spans share a character."""
    return span[0] < other_span[1] and other_span[0] < span[1]


@lru_cache(maxsize=16384)
def dates_in(text: str) -> tuple[Date, ...]:
    """Return all dates in a text, in order, from bare years to full days.

    >>> [d[:3] for d in dates_in("born 3 May 1901, married in June 1925, died March 4, 1970")]
    [(1901, 5, 3), (1925, 6, 0), (1970, 3, 4)]
    """
    if not _DIGIT.search(text):  # a short cut, as most names have no date
        return ()
    dates = []
    for match in _DATE.finditer(text):
        groups = {name[0]: value for name, value in match.groupdict().items() if value}
        year, day = int(groups.get("y", 0)), int(groups.get("d", 0))
        month = _MONTH_NUMBERS.get(groups.get("m", "")[:3].lower(), 0)
        if year and _BEFORE_CHRIST.match(text, match.end()):
            year = -year
        if day <= 31:
            dates.append(Date(year, month, day, match.start(), match.end()))
    return tuple(dates)


@lru_cache(maxsize=16384)
def as_date(text: str) -> Date | None:
    """Parse a text that is a date; None if it is anything else.

    >>> as_date("4 March 1970")[:3], as_date("1970-03-04")[:3], as_date("Oru") is None
    ((1970, 3, 4), (1970, 3, 4), True)
    """
    text = fold(text)
    dates = dates_in(text)
    if len(dates) != 1:
        return None
    remainder = text[: dates[0].start] + text[dates[0].end :]
    return dates[0] if normal_words(remainder) in _AROUND_DATE and dates[0].year else None


def as_number(text: str) -> float | None:
    """Return the first number of a text, in digits or as a word up to twenty; None if there is none.

    >>> as_number("about 1,250 people"), as_number("seven million"), as_number("none")
    (1250.0, 7000000.0, None)
    """
    match = _NUMBER.search(text)
    if match is None:
        return None
    digits, word, scale = match.groups()
    value = float(digits.replace(",", "")) if digits else float(_NUMBER_WORDS[word.lower()])
    return value * _SCALES[scale.lower()] if scale else value


def present_name(name: str) -> str:
    """Return the present or usual name of a place; both names are cleaned.

    >>> present_name("bombay"), present_name("oru")
    ('mumbai', 'oru')
    """
    return _FORMER_NAMES.get(name, name)


def other_names(name: str) -> tuple[str, ...]:
    """Return the other names of a place; all names are cleaned.

    >>> other_names("mumbai")
    ('bombay',)
    """
    present = present_name(name)
    names = (present, *(old for old, new in _FORMER_NAMES.items() if new == present))
    return tuple(alternative for alternative in names if alternative != name)
