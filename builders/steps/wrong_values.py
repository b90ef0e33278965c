"""Values that could be mistaken for a fact's own: of the same sort, near at hand if possible.

What a reader confuses is what the passages hold (the hamlet Eden for Lake Eden), so names, dates
and places come from the other passages first, those that share words with the right one foremost.
"""

import re
from collections.abc import Iterator

from safe_stepwise.checking.plans import Item
from safe_stepwise.language.mentions import names_in
from safe_stepwise.language.reading import CAPITAL
from safe_stepwise.language.relations import RELATIONS, same_nation
from safe_stepwise.language.text import (
    MONTHS,
    as_date,
    as_number,
    dates_in,
    normal_name,
    without_qualifier,
)
from safe_stepwise.language.vocabulary import load
from safe_stepwise.records import Question

_PLACE = re.compile(rf"\b(?:in|at|near) ({CAPITAL}[\w'’-]+(?: {CAPITAL}[\w'’-]+)*)")
_MOST = 6
_MONTHS = frozenset(month.title() for month in MONTHS)


def wrong_values(question: Question, item: Item, value: str, choice: int) -> list[str]:
    """Other values for a fact, at most six, in an order that ``choice`` varies."""
    relation = RELATIONS.get(item.triples[0].relation)
    kind = relation.kind if relation and item.sentence is None else ""
    if as_date(value):
        found = list(_dates(question, value))
    elif kind == "nation":
        found = list(_nations(value, choice))
    elif kind == "place":
        found = list(_places(question, value))
    elif as_number(value) is not None and len(value.split()) <= 2:
        found = list(_numbers(value))
    else:
        found = list(_names(question, value))
    words = set(normal_name(value).split())
    known = {normal_name(t.head) for t in item.triples}
    other = [
        v
        for v in dict.fromkeys(found)
        if normal_name(v) not in known and not set(normal_name(v).split()) >= words
    ]
    start = choice % len(other) if other else 0
    return (other[start:] + other[:start])[:_MOST]


def unstated_year(question: Question, choice: int) -> int:
    """A year of the last centuries that no passage has."""
    held = " ".join(page.text for page in question.passages)
    start = choice % 160
    return next(y for n in range(160) if str(y := 1850 + (start + 7 * n) % 160) not in held)


def _dates(question: Question, value: str) -> Iterator[str]:
    """Dates of other passages, else the same day in other years."""
    date = as_date(value)
    assert date is not None
    for page in question.passages:
        text = page.text
        for found in dates_in(text):
            written = text[found.start : found.end]
            alike = bool(found.day) == bool(date.day) and found.year
            if alike and not found.agrees(date):
                yield written
    for by in (4, -7, 11, -3):
        yield value.replace(str(abs(date.year)), str(abs(date.year) + by))


def _nations(value: str, choice: int) -> Iterator[str]:
    forms = load("nations")
    demonym = any(value.lower() in words for words in forms.values())
    nations = sorted(forms)
    for n in range(_MOST):
        nation = nations[(choice + 37 * n) % len(nations)]
        if same_nation(nation, value.lower()):
            continue
        words = [nation, *forms[nation]] if not demonym else list(forms[nation])
        yield str(words[0]).title() if words else nation.title()


def _places(question: Question, value: str) -> Iterator[str]:
    for page in sorted(question.passages, key=lambda page: page.is_gold):
        for found in _PLACE.finditer(page.text):
            if found[1] not in _MONTHS:
                yield found[1]


def _numbers(value: str) -> Iterator[str]:
    digits = re.search(r"\d[\d,]*", value)
    if digits is None:
        return
    number = int(digits[0].replace(",", ""))
    for by in (3, -2, 7, 12):
        if number + by > 0:
            yield value.replace(digits[0], str(number + by))


def _names(question: Question, value: str) -> Iterator[str]:
    """Subjects of other passages, those with a word in common first, then names within them."""
    words = set(normal_name(value).split())
    pages = [page for page in question.passages if not page.is_gold]
    pages.sort(key=lambda page: -len(words & set(normal_name(page.title).split())))
    size = len(value.split())
    titles = [without_qualifier(page.title) for page in pages]
    near = [t for t in titles if abs(len(t.split()) - size) <= 1 and not re.search(r"\d", t)]
    yield from near
    for page in pages:
        for written, _ in names_in(page).values():
            if len(written.split()) == size and written not in _MONTHS:
                yield written
