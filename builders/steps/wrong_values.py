"""Values that could be mistaken for a fact's own: of the same sort, near at hand if possible.

What a reader confuses is what the passages hold (the hamlet Eden for Lake Eden), so names, dates
and places come from the passages, those that share words with the right one foremost.
"""

import re
from collections.abc import Iterator, Sequence

from builders.steps.sorts import of_sort, sort_asked_for, sort_of_name, sort_of_tail
from safe_stepwise.checking.plans import Item
from safe_stepwise.checking.step_reading import has_value
from safe_stepwise.language.relations import RELATIONS, same_nation
from safe_stepwise.language.text import as_date, as_number, dates_in, normal_name
from safe_stepwise.records import Passage, Question

_MOST = 6
_YEARS = 60
"""Between two dates of which one could be mistaken for the other, at most."""
_DEMONYMS = dict(
    pair.strip().split(" of ")
    for pair in """
    American of United States, Argentine of Argentina, Australian of Australia, Austrian of Austria,
    Belgian of Belgium, Brazilian of Brazil, British of United Kingdom, Bulgarian of Bulgaria,
    Canadian of Canada, Chilean of Chile, Chinese of China, Colombian of Colombia,
    Croatian of Croatia, Cuban of Cuba, Czech of Czech Republic, Danish of Denmark,
    Dutch of Netherlands, Egyptian of Egypt,
    English of England, Estonian of Estonia, Ethiopian of Ethiopia, Finnish of Finland,
    French of France, German of Germany, Greek of Greece, Hungarian of Hungary,
    Icelandic of Iceland,
    Indian of India, Indonesian of Indonesia, Iranian of Iran, Irish of Ireland, Israeli of Israel,
    Italian of Italy, Japanese of Japan, Kenyan of Kenya, Korean of South Korea, Latvian of Latvia,
    Mexican of Mexico, Moroccan of Morocco, Nigerian of Nigeria, Norwegian of Norway,
    Pakistani of Pakistan, Peruvian of Peru, Polish of Poland, Portuguese of Portugal,
    Romanian of Romania, Russian of Russia, Scottish of Scotland, Serbian of Serbia,
    Slovak of Slovakia, Slovenian of Slovenia, Spanish of Spain, Swedish of Sweden,
    Swiss of Switzerland, Thai of Thailand, Turkish of Turkey, Ukrainian of Ukraine,
    Ugandan of Uganda, Uruguayan of Uruguay, Vietnamese of Vietnam, Welsh of Wales
    """.split(",")
)
"""What people of a nation are called, and the nation; enough to confuse one with another."""
_VOWEL = re.compile("[aeiou]", re.IGNORECASE)


def wrong_values(question: Question, item: Item, value: str, choice: int, others: Sequence[Passage] = ()) -> list[str]:
    """Other values for a fact, at most six, in an order that ``choice`` varies.

    ``others`` are passages of another question, where this one's have too few of the sort. There
    are none for a value whose sort is not known.
    """
    relation = RELATIONS.get(item.triples[0].relation)
    kind = relation.kind if relation and item.sentence is None else ""
    if as_date(value):
        found = list(_dates(question, value))
    elif kind == "nation" or value in _DEMONYMS:
        found = list(_nations(value, choice))
    elif as_number(value) is not None and len(value.split()) <= 2:
        found = list(_numbers(value))
    else:
        found = list(_names(question, item, value, others))
    words = set(normal_name(value).split())
    known = {normal_name(name) for name in item.ends}
    if item.sentence is not None:  # what the passage names elsewhere could be no altered quotation
        page = item.page(question.passages)
        found = [v for v in found if not has_value(page, v)]
    other = [
        v for v in dict.fromkeys(found) if normal_name(v) not in known and not set(normal_name(v).split()) >= words
    ]
    start = choice % len(other) if other else 0
    return (other[start:] + other[:start])[:_MOST]


def value_in(sentence: str) -> str | None:
    """A date or number of a sentence, which can be given wrongly where no name makes it a link.

    >>> value_in("It was built on 3 May 1901 for 40 people."), value_in("It was built.")
    ('3 May 1901', None)
    """
    for found in dates_in(sentence):
        if found.year:
            return sentence[found.start : found.end]
    number = re.search(r"(?<![\w.,-])\d[\d,]*(?![\w,.-]*\d)(?!\w)", sentence)
    return number[0] if number else None


def unstated_year(question: Question, choice: int) -> int:
    """A year of the last centuries that no passage has."""
    held = " ".join(page.text for page in question.passages)
    start = choice % 160
    return next(y for n in range(160) if str(y := 1850 + (start + 7 * n) % 160) not in held)


def _dates(question: Question, value: str) -> Iterator[str]:
    """Dates of other passages that are as exact, written alike; else the day of other years."""
    date = as_date(value)
    assert date is not None
    form = _shape(value)
    for page in question.passages:
        text = page.text
        for found in dates_in(text):
            written = text[found.start : found.end]
            near = abs(found.year - date.year) <= _YEARS
            if found.year and near and _shape(written) == form and not found.agrees(date):
                yield written
    if date.year:
        for by in (4, -7, 11, -3):
            yield value.replace(str(abs(date.year)), str(abs(date.year) + by))


def _shape(written: str) -> str:
    """How a date is written: digits and letters apart from which ones."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", written))


def _nations(value: str, choice: int) -> Iterator[str]:
    """Nations in the form of the value, that begin as it does as far as an article goes."""
    vowel, form = bool(_VOWEL.match(value)), value in _DEMONYMS
    nations = list(_DEMONYMS.items())
    for n in range(len(nations)):
        demonym, nation = nations[(choice + 37 * n) % len(nations)]
        written = demonym if form else nation
        if not same_nation(nation.lower(), value.lower()) and bool(_VOWEL.match(written)) == vowel:
            yield written


def _numbers(value: str) -> Iterator[str]:
    digits = re.search(r"\d[\d,]*", value)
    if digits is None:
        return
    number = int(digits[0].replace(",", ""))
    for by in (3, -2, 7, 12):
        if number + by > 0:
            written = f"{number + by:,}" if "," in digits[0] else str(number + by)
            yield value.replace(digits[0], written)


def _names(question: Question, item: Item, value: str, others: Sequence[Passage]) -> Iterator[str]:
    """Names of the value's sort, from the question's passages first, the likest foremost."""
    sort = sort_of_name(value, question.passages)
    if item.sentence is None:
        relation = item.triples[0].relation
        sort = sort_of_tail(relation) or sort_asked_for(relation) or sort
    if sort is None:
        return
    words = set(normal_name(value).split())
    for pages in (question.passages, others):
        found = dict.fromkeys(of_sort(sort, pages))
        yield from sorted(found, key=lambda name: -len(words & set(normal_name(name).split())))
