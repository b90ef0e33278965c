"""Finds wrong values for a fact: of the same sort, and from the passages if possible.

What a reader confuses is what the passages hold (the hamlet Eden for Lake Eden), so names, dates
and places come from the passages, those that share words with the right one foremost.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, get_args

from builders.steps.values import PATTERNS, WORDS
from safe_stepwise.checking.plans import Item
from safe_stepwise.checking.step_reading import has_value
from safe_stepwise.language import syntax, vocabulary
from safe_stepwise.language.relations import RELATIONS, is_nation, same_nation
from safe_stepwise.language.text import MONTHS, as_date, as_number, dates_in, normal_name, without_qualifier
from safe_stepwise.records import Passage, Question

_MAX_CANDIDATES = 6
_YEARS = 60
"""The most years between two dates that could be confused."""
_DEMONYMS: dict[str, str] = WORDS["demonyms"]
_VOWEL = re.compile("[aeiou]", re.IGNORECASE)


def wrong_values(question: Question, item: Item, value: str, choice: int, pages: Sequence[Passage] = ()) -> list[str]:
    """Return at most six other values of a fact's sort, those of its passage first; ``pages`` may lend some."""
    relation = RELATIONS.get(item.triples[0].relation)
    kind = relation.kind if relation and item.sentence is None else ""
    if as_date(value):
        values = list(_dates(question, value))
    elif kind == "nation" or value in _DEMONYMS:
        values = list(_nations(value, choice))
    elif as_number(value) is not None and len(value.split()) <= 2:
        values = list(_numbers(value))
    else:
        values = list(_names(question, item, value, pages))
    words = set(normal_name(value).split())
    ends = {normal_name(name) for name in item.ends}
    if item.sentence is not None:  # what the passage names elsewhere could be no altered quotation
        page = item.page(question.passages)
        values = [v for v in values if not has_value(page, v)]
    candidates = [
        v for v in dict.fromkeys(values) if normal_name(v) not in ends and not set(normal_name(v).split()) >= words
    ]
    own_pages = [item.page(question.passages)] if item.passage_number else []
    beside = [value for value in candidates if any(has_value(page, value) for page in own_pages)]
    others = [value for value in candidates if value not in beside]
    return [*_turned(beside, choice), *_turned(others, choice)][:_MAX_CANDIDATES]


def _turned(values: list[str], choice: int) -> list[str]:
    start = choice % len(values) if values else 0
    return values[start:] + values[:start]


def value_in(sentence: str) -> str | None:
    """Return a date or number of a sentence, which an error can replace, or None if there is none.

    >>> value_in("It was built on 3 May 1901 for 40 people."), value_in("It was built.")
    ('3 May 1901', None)
    """
    for date in dates_in(sentence):
        if date.year:
            return sentence[date.start : date.end]
    number = re.search(r"(?<![\w.,-])\d[\d,]*(?![\w,.-]*\d)(?!\w)", sentence)
    return number[0] if number else None


def unstated_year(question: Question, choice: int, page: Passage) -> int:
    """Return a year that no passage has, soon after the last one of a passage, if that has any."""
    text = " ".join(page.text for page in question.passages)
    years = [date.year for date in dates_in(page.text) if 1000 < date.year < 2030]
    first = min(max(years, default=1950), 1990) + 1
    return next(year for n in range(200) if str(year := first + (choice + 7 * n) % 25 + n) not in text)


def _dates(question: Question, value: str) -> Iterator[str]:
    """Yield dates of other passages that are as exact and written alike; else the day in other years."""
    date = as_date(value)
    assert date is not None
    form = _shape(value)
    for page in question.passages:
        text = page.text
        for text_date in dates_in(text):
            date_text = text[text_date.start : text_date.end]
            near = abs(text_date.year - date.year) <= _YEARS
            if text_date.year and near and _shape(date_text) == form and not text_date.agrees(date):
                yield date_text
    if date.year:
        for years in (4, -7, 11, -3):
            yield value.replace(str(abs(date.year)), str(abs(date.year) + years))


def _shape(date_text: str) -> str:
    """Return the format of a date, with its digits and letters masked."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", date_text))


def _nations(value: str, choice: int) -> Iterator[str]:
    """Yield nations in the form of the value that need the same indefinite article."""
    vowel, form = bool(_VOWEL.match(value)), value in _DEMONYMS
    nations = list(_DEMONYMS.items())
    for n in range(len(nations)):
        demonym, nation = nations[(choice + 37 * n) % len(nations)]
        name = demonym if form else nation
        if not same_nation(nation.lower(), value.lower()) and bool(_VOWEL.match(name)) == vowel:
            yield name


def _numbers(value: str) -> Iterator[str]:
    if (digits := re.search(r"\d[\d,]*", value)) is None:
        return
    number = int(digits[0].replace(",", ""))
    for difference in (3, -2, 7, 12):
        if number + difference > 0:
            number_text = f"{number + difference:,}" if "," in digits[0] else str(number + difference)
            yield value.replace(digits[0], number_text)


def _names(question: Question, item: Item, value: str, partners: Sequence[Passage]) -> Iterator[str]:
    """Yield names of the value's sort, from the question's passages first, the most similar ones first."""
    sort = sort_of_name(value, question.passages)
    if item.sentence is None:
        relation = item.triples[0].relation
        sort = sort_of_tail(relation) or sort_asked_for(relation) or sort
    if sort is None:
        return
    words = set(normal_name(value).split())
    if item.sentence is None and item.passage_number:
        for name in syntax.names_in_text(item.page(question.passages).text):
            if _is_like(name, value) and not words & set(normal_name(name).split()):
                yield name
    for pages in (question.passages, partners):
        names = dict.fromkeys(of_sort(sort, pages))
        yield from sorted(names, key=lambda name: -len(words & set(normal_name(name).split())))


def _is_like(name: str, value: str) -> bool:
    """Whether a name may be of a value's sort, as far as their forms tell: words, capitals, no digits."""
    is_plain = name.istitle() and not any(char.isdigit() for char in name)
    return len(name.split()) == len(value.split()) and is_plain and not is_nation(name.lower())


Sort = Literal["person", "place", "group", "work"]

_SORTS: tuple[Sort, ...] = get_args(Sort)
# "is one of the first films of": the noun before what tells of it more, its head.
_IS_A = re.compile(PATTERNS["is_a"])
_NOUN = "|".join(rf"(?P<{s}>\b(?:{'|'.join(sorted(vocabulary.word_list(f'sort_{s}')))})s?)" for s in _SORTS)
_HEAD = re.compile(rf"(?:{_NOUN})$")
_ASKS_FOR = re.compile(
    rf"(?:in |at |from |on )?(?:what|which|who (?:is|was|are|were)) (?:\w+ ){{0,3}}?(?:{_NOUN})\b", re.IGNORECASE
)
_BORN = re.compile(PATTERNS["born"], re.IGNORECASE)
_IN_A_PLACE = re.compile(PATTERNS["in_a_place"])
_MONTHS = frozenset(month.title() for month in MONTHS)


@lru_cache(maxsize=8192)
def sort_of(page: Passage) -> Sort | None:
    """Sort of a passage's subject, by its first sentence.

    >>> sort_of(Passage("Dune Rain", ("Dune Rain is a 1954 film by Ors Velt, a poet.",)))
    'work'
    """
    first = page.sentences[0] if page.sentences else ""
    title = normal_name(page.title).split()
    definition = _IS_A.match(first)
    subject = normal_name(definition["who"] if definition else first).split()
    if 2 * sum(word in subject for word in title) < len(title) or title[:1] == ["list"]:
        return None
    noun = _HEAD.search(definition["what"].lower()) if definition else None
    if noun is not None:
        return _matched_sort(noun)
    born = _BORN.search(first) and not any(char.isdigit() for char in page.title)
    return "person" if born else None


def _matched_sort(noun: re.Match[str]) -> Sort:
    return next(sort for sort in _SORTS if noun[sort])


def sort_of_tail(relation: str) -> Sort | None:
    """Return the sort of a relation's tails, or None if they have several.

    >>> sort_of_tail("director"), sort_of_tail("place of birth"), sort_of_tail("part of")
    ('person', 'place', None)
    """
    if relation in RELATIONS and RELATIONS[relation].kind == "place":
        return "place"
    return "person" if relation in WORDS["persons"] else "group" if relation in WORDS["groups"] else None


def sort_asked_for(question: str) -> Sort | None:
    """Return the sort of entity that a question asks for, or None if it does not say.

    >>> sort_asked_for("Which city was Ana Vorr born in?"), sort_asked_for("Who won?")
    ('place', None)
    """
    match = _ASKS_FOR.match(question)
    return _matched_sort(match) if match else None


def sort_of_name(name: str, pages: Iterable[Passage]) -> Sort | None:
    """Return the sort of a name: that of the passage about it, or "place" if a passage says so; None if unknown."""
    plain_name = normal_name(name)
    for page in pages:
        if normal_name(page.title) == plain_name:
            return sort_of(page)
        if any(normal_name(match[1]) == plain_name for match in _IN_A_PLACE.finditer(page.text)):
            return "place"
    return None


def of_sort(sort: Sort, pages: Iterable[Passage]) -> Iterator[str]:
    """Yield names of a sort: subjects of passages, and places that passages name."""
    pages = list(pages)
    for page in pages:
        if sort_of(page) == sort:
            yield without_qualifier(page.title)
    if sort == "place":
        for page in pages:
            for match in _IN_A_PLACE.finditer(page.text):
                if match[1].split()[0] not in _MONTHS:
                    yield match[1]
