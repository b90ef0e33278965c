"""Names and numbers that a text gives, read by a rule of its own, and where they stand.

The checker reads values by `language.mentions.names_in`; a second opinion on what it found is worth
something only if it reads for itself.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from safe_stepwise.language.mentions import first_mention
from safe_stepwise.language.reading import read
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.records import Passage

WORDS: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("words.yaml").read_text(encoding="utf-8"))
FAMILIES: dict[str, str] = WORDS["families"]
"""Every weakness of verifiers by its name, and what a verifier with it does."""


def words(name: str) -> frozenset[str]:
    """One of its lists of words."""
    return frozenset(WORDS[name].split())


_PLACE = re.compile(r"\b(?:passage|step)s? \d+(?:(?:,| and|, and) \d+)*", re.IGNORECASE)
_TOKEN = re.compile(r"\d[\d,.]*\d|\d|(?<!\w)[^\W\d_][\w\u0300-\u036f&’'.-]*")
_NEW_SENTENCE = re.compile(r"(?:^|[.!?]\s+|[“\"‘])[\s“\"‘'(]*$")
_JOINERS = frozenset("of the de la von van del al bin da di".split())
_JOINED = re.compile(rf"\s+(?:(?:{'|'.join(sorted(_JOINERS))})\s+){{0,2}}")
_NO_NAMES = word_list("stop_words") | word_list("step_openers") | words("of_the_work")
_LONGEST = 8000
"""Characters that are looked into: a step has 1,000 at most."""


def values_in(text: str) -> tuple[str, ...]:
    """Names and numbers in the order of a text; the day and year of a date are numbers.

    Numbers of passages and steps are none, nor is a single word that opens a sentence, whose capital says nothing.

    >>> values_in("According to Passage 2, Ors Velt's film of 3 May 1901 won 1,200 Crowns.")
    ('Ors Velt', '3', 'May', '1901', '1,200', 'Crowns')
    """
    plain = _PLACE.sub("it", text[:_LONGEST])
    return tuple(dict.fromkeys(_runs(plain)))


def numbers_in(text: str) -> frozenset[str]:
    """The numbers of a text, those of passages and steps included, without what groups digits.

    >>> sorted(numbers_in("Passage 2 counts 1,200 of them."))
    ['1200', '2']
    """
    return frozenset(n.replace(",", "") for n in re.findall(r"\d[\d,.]*\d|\d", text))


def stands_in(value: str, page: Passage) -> bool:
    """Whether a passage gives a value, in its text or title.

    >>> page = Passage("Oru", ("Oru grew in the 1940s.",))
    >>> stands_in("1940", page), stands_in("194", page), stands_in("Ana Vorr", page)
    (True, False, False)
    """
    if value[:1].isdigit():
        number = value.replace(",", "")
        return any(number == text_number for text_number in numbers_in(f"{page.title} {page.text}"))
    return first_mention(read(page), value) is not None


def stands(value: str, pages: Iterable[Passage]) -> bool:
    """Whether some passage gives a value."""
    return any(stands_in(value, page) for page in pages)


def _runs(text: str) -> Iterator[str]:
    """Numbers, and capitalised words with those that follow them."""
    run: list[str] = []
    opens, end = False, 0
    for token in _TOKEN.finditer(text):
        word = _bare(token[0])
        if run and word in _JOINERS:
            continue
        if run and not (_is_capital(word) and _JOINED.fullmatch(text, end, token.start())):
            yield from _name_of_run(run, opens)
            run = []
        if word[:1].isdigit():
            yield word
        elif _is_capital(word):
            if not run:
                opens = bool(_NEW_SENTENCE.search(text, max(0, token.start() - 20), token.start()))
            run.append(text[end : token.start()].lstrip() + word if run else word)
        end = token.start() + len(word)
    yield from _name_of_run(run, opens)


def _name_of_run(run: list[str], opens: bool) -> Iterator[str]:
    """The name of a run, if there is one."""
    bare = [*run]
    while bare and bare[0].casefold() in _NO_NAMES:
        bare, opens = bare[1:], False
    if bare and not (opens and len(bare) == 1):
        yield " ".join(bare)


def _bare(word: str) -> str:
    """A word without what closes it: a genitive, a full stop."""
    plain = word.rstrip(".&-'’")
    return plain[:-2].rstrip(".&-'’") if plain.endswith(("'s", "’s")) else plain


def _is_capital(word: str) -> bool:
    return word[:1].isupper()
