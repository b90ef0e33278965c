"""Compares words and names by their spelling: stems, synonyms, days, and short forms of names."""

import re
from functools import lru_cache

from safe_stepwise.language.text import as_date, dates_in, normal_name, strip_diacritics
from safe_stepwise.language.vocabulary import load, word_list

REPORTING = frozenset(load("predicates")["reporting"].split())
STOP_WORDS = word_list("stop_words") | REPORTING
SYNONYMS: dict[str, set[str]] = {}
for _group in load("predicates")["synonyms"]:
    for _word in _group.split():
        SYNONYMS.setdefault(_word, set()).update(_group.split())
_STEM_CHARS = 5  # first letters of a word, by which its forms are compared
NUMBER = re.compile(r"\d[\d,.]*")
BOUNDS = frozenset(("before", "after", "near", "around", "outside", "beyond", "until", "till"))
"""Roles that only bound a place or time: "before 1900", "near Oru"."""


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case; a day is one word, in whatever form it is written."""
    text = strip_diacritics(text).lower()
    pieces, end = [], 0
    for date in dates_in(text):
        if date.year and date.day:
            pieces += [text[end : date.start], f"{date.year}-{date.month}-{date.day}"]
            end = date.end
    return re.findall(r"[\w'’-]+", "".join([*pieces, text[end:]]))


def is_time(value: str) -> bool:
    """Whether a value is a date or a number, not a title that begins with one ("127 Hours")."""
    return as_date(value) is not None or NUMBER.fullmatch(value) is not None


def stem(word: str) -> str:
    """Return the stem of a word: its first letters."""
    return word[:_STEM_CHARS]


@lru_cache(maxsize=65536)
def is_same_name(name: str, other_name: str) -> bool:
    """Whether two spellings may mean the same: one has the words, initials or ends of the other, or their dates agree.

    >>> is_same_name("Velt", "Ors Velt"), is_same_name("O. Velt", "Ors Velt"), is_same_name("Ors Velt", "Ors Vorr")
    (True, True, False)
    """
    if name[:1].isdigit() and other_name[:1].isdigit() and name == other_name:
        return True
    date, other_date = as_date(name), as_date(other_name)
    if date or other_date:
        return bool(date and other_date and date.agrees(other_date))
    words, other_words = normal_name(name).split(), normal_name(other_name).split()
    if not words or not other_words:
        return False
    short, long = sorted((words, other_words), key=len)
    if len(short) > 1 and short[-1] == long[-1] and short[0][0] == long[0][0] and 1 in (len(short[0]), len(long[0])):
        return True
    if set(short) <= set(long) and (short[-1] == long[-1] or short[0] == long[0]):
        return True
    return 1 < len(short) < len(long) and (short[0], short[-1]) == (long[0], long[-1])
