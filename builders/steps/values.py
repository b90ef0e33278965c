"""Read names and numbers from a text, and find them in passages.

The checker reads values by `language.mentions.names_in`. This module reads them by another method, so that its
agreement with the checker is independent evidence.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from safe_stepwise.language import reading, vocabulary
from safe_stepwise.language.mentions import first_mention
from safe_stepwise.language.text import CAPITAL
from safe_stepwise.records import Passage
from safe_stepwise.store.boundary import read_yaml
from safe_stepwise.store.packaged import read_patterns

WORDS: dict[str, Any] = read_yaml(Path(__file__).with_name("words.yaml"))
PATTERNS = read_patterns(Path(__file__).with_name("patterns.yaml"), capital=CAPITAL)


def words(name: str) -> frozenset[str]:
    """Return one of the word lists of ``words.yaml``."""
    return frozenset(WORDS[name].split())


_CITATION = re.compile(r"\b(?:passage|step)s? \d+(?:(?:,| and|, and) \d+)*", re.IGNORECASE)
_TOKEN = re.compile(r"\d[\d,.]*\d|\d|(?<!\w)[^\W\d_][\w\u0300-\u036f&’'.-]*")
_NEW_SENTENCE = re.compile(r"(?:^|[.!?]\s+|[“\"‘])[\s“\"‘'(]*$")
_JOINERS = frozenset("of the de la von van del al bin da di".split())
_JOINED = re.compile(rf"\s+(?:(?:{'|'.join(sorted(_JOINERS))})\s+){{0,2}}")
_NO_NAMES = vocabulary.word_list("stop_words") | vocabulary.word_list("step_openers") | words("of_the_work")
_QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|‘[^’]*’")
_LETTERS = re.compile(r"[^\W\d_]+")
_ENGLISH = words("english") | vocabulary.word_list("stop_words")
_MAX_CHARS = 8000
"""Characters of a text that are read; a step has at most 1,000."""


def values_in(text: str) -> tuple[str, ...]:
    """Return a text's names and numbers in order, without citations and single words that open a sentence.

    >>> values_in("According to Passage 2, Ors Velt's film of 3 May 1901 won 1,200 Crowns.")
    ('Ors Velt', '3', 'May', '1901', '1,200', 'Crowns')
    """
    return tuple(dict.fromkeys(_runs(_CITATION.sub("it", text[:_MAX_CHARS]))))


def numbers_in(text: str) -> frozenset[str]:
    """Return the numbers of a text, those of passages and steps included, without their digit grouping.

    >>> sorted(numbers_in("Passage 2 counts 1,200 of them."))
    ['1200', '2']
    """
    return frozenset(n.replace(",", "") for n in re.findall(r"\d[\d,.]*\d|\d", text))


def occurs_in(value: str, page: Passage) -> bool:
    """Whether the text or title of a passage contains a value: a name, or a number whatever its digit grouping."""
    if value[:1].isdigit():
        number = value.replace(",", "")
        return any(number == text_number for text_number in numbers_in(f"{page.title} {page.text}"))
    return first_mention(reading.read(page), value) is not None


def occurs_in_any(value: str, pages: Iterable[Passage]) -> bool:
    return any(occurs_in(value, page) for page in pages)


def _runs(text: str) -> Iterator[str]:
    """Yield numbers, and names as runs of capitalised words."""
    run: list[str] = []
    opens, end = False, 0
    for token in _TOKEN.finditer(text):
        word = _bare(token[0])
        if run and word in _JOINERS:
            continue
        if run and not (word[:1].isupper() and _JOINED.fullmatch(text, end, token.start())):
            yield from _name_of_run(run, opens)
            run = []
        if word[:1].isdigit():
            yield word
        elif word[:1].isupper():
            if not run:
                opens = bool(_NEW_SENTENCE.search(text, max(0, token.start() - 20), token.start()))
            run.append(text[end : token.start()].lstrip() + word if run else word)
        end = token.start() + len(word)
    yield from _name_of_run(run, opens)


def _name_of_run(run: list[str], opens: bool) -> Iterator[str]:
    bare = [*run]
    while bare and bare[0].casefold() in _NO_NAMES:
        bare, opens = bare[1:], False
    if bare and not (opens and len(bare) == 1):
        yield " ".join(bare)


def _bare(word: str) -> str:
    """Return a word without its ending: a genitive or a full stop."""
    plain = word.rstrip(".&-'’")
    return plain[:-2].rstrip(".&-'’") if plain.endswith(("'s", "’s")) else plain


def is_english(text: str, min_share: float = 0.2) -> bool:
    """Whether a text can be English: its script, and ``min_share`` everyday words for each word in lower case.

    >>> is_english("Passage 2 says that Oru lies on the Vel.")
    True
    >>> is_english("Laut Passage 2 liegt Oru auf der linken Seite des Vel.")
    False
    """
    text = _QUOTED.sub(" ", text)
    letters = [letter for letter in text if letter.isalpha()]
    latin = sum(letter < "\u0250" or "LATIN" in unicodedata.name(letter, "") for letter in letters)
    if letters and latin < len(letters) / 2:
        return False
    spellings: list[str] = _LETTERS.findall(text)
    lower = sum(word.islower() for word in spellings)
    return lower < 4 or sum(word.lower() in _ENGLISH for word in spellings) >= min_share * lower
