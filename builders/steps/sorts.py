"""What sort of thing a name means, as far as the passages tell: a person, a place, a group, a work.

A wrong value is one that could be right: of the sort of the right one.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal, get_args

from safe_stepwise.language.reading import CAPITAL
from safe_stepwise.language.relations import RELATIONS
from safe_stepwise.language.text import MONTHS, normal_name, without_qualifier
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.records import Passage

Sort = Literal["person", "place", "group", "work"]

_SORTS: tuple[Sort, ...] = get_args(Sort)
# "is one of the first films of": the noun before what tells of it more, its head.
_IS_A = re.compile(
    r"(?P<who>.{1,400}?)\b(?:is|was|are|were) (?:one of |part of |(?:a|an|the) (?:kind|type) of )?"
    r"(?P<what>[^.;,()\"“]{0,120}?) *(?=[.;,()\"“]|$|\b(?:of|in|on|at|by|from|for|with|to|about"
    r"|that|which|who|whose|where|when|between|during|based|located|situated|directed|written"
    r"|recorded|performed|sung|produced|released|published|founded|made|formed|played|held|featuring|starring|known|best"
    r"|currently|appearing|headquartered|near|and is|and was)\b)"
)
_NOUN = "|".join(rf"(?P<{s}>\b(?:{'|'.join(sorted(word_list(f'sort_{s}')))})s?)" for s in _SORTS)
_HEAD = re.compile(rf"(?:{_NOUN})$")
_ASKS_FOR = re.compile(
    rf"(?:in |at |from |on )?(?:what|which|who (?:is|was|are|were)) (?:\w+ ){{0,3}}?(?:{_NOUN})\b", re.IGNORECASE
)
_BORN = re.compile(
    r"\((?:[^()]{0,60}?\b)?(?:born|\d{4} ?[-–—]"
    r"|\d{4}[^()]{0,60}? [-–—] [^()]{0,60}?\d{4})",
    re.IGNORECASE,
)
_IN_A_PLACE = re.compile(
    r"\b(?:born (?:and raised )?in|died in|located in|lies in|based in"
    r"|(?:city|town|village|capital) of|(?:city|town|village|municipality|county|district) in)"
    rf" ({CAPITAL}[\w'’-]+(?: {CAPITAL}[\w'’-]+)*)"
)
_PERSONS = frozenset(
    ("director", "author", "screenwriter", "producer", "composer", "performer", "spouse", "father",
     "mother", "child", "sibling", "cast member", "presenter", "creator", "founded by", "editor")
)  # fmt: skip
_GROUPS = frozenset(
    ("educated at", "employer", "record label", "publisher", "member of political party",
     "member of sports team", "manufacturer")
)  # fmt: skip
_MONTHS = frozenset(month.title() for month in MONTHS)


@lru_cache(maxsize=8192)
def sort_of(page: Passage) -> Sort | None:
    """What sort of thing a passage is about, by how its first sentence calls it.

    >>> sort_of(Passage("Dune Rain", ("Dune Rain is a 1954 film by Ors Velt, a poet.",)))
    'work'
    """
    first = page.sentences[0] if page.sentences else ""
    title = normal_name(page.title).split()
    called = _IS_A.match(first)
    who = normal_name(called["who"] if called else first).split()
    if 2 * sum(word in who for word in title) < len(title) or title[:1] == ["list"]:
        return None
    noun = _HEAD.search(called["what"].lower()) if called else None
    if noun is not None:
        return _named(noun)
    born = _BORN.search(first) and not any(char.isdigit() for char in page.title)
    return "person" if born else None


def _named(noun: re.Match[str]) -> Sort:
    return next(sort for sort in _SORTS if noun[sort])


def sort_of_tail(relation: str) -> Sort | None:
    """What sort of thing a relation leads to, where it leads to one alone.

    >>> sort_of_tail("director"), sort_of_tail("place of birth"), sort_of_tail("part of")
    ('person', 'place', None)
    """
    if relation in RELATIONS and RELATIONS[relation].kind == "place":
        return "place"
    return "person" if relation in _PERSONS else "group" if relation in _GROUPS else None


def sort_asked_for(question: str) -> Sort | None:
    """What sort of thing a question asks for, where it says so.

    >>> sort_asked_for("Which city was Ana Vorr born in?"), sort_asked_for("Who won?")
    ('place', None)
    """
    asked = _ASKS_FOR.match(question)
    return _named(asked) if asked else None


def sort_of_name(name: str, pages: Iterable[Passage]) -> Sort | None:
    """What sort of thing a name means: that of the passage about it, or where someone was born."""
    wanted = normal_name(name)
    for page in pages:
        if normal_name(page.title) == wanted:
            return sort_of(page)
        if any(normal_name(found[1]) == wanted for found in _IN_A_PLACE.finditer(page.text)):
            return "place"
    return None


def of_sort(sort: Sort, pages: Iterable[Passage]) -> Iterator[str]:
    """Names of a sort: subjects of passages, and places that they name as such."""
    pages = list(pages)
    for page in pages:
        if sort_of(page) == sort:
            yield without_qualifier(page.title)
    if sort == "place":
        for page in pages:
            for found in _IN_A_PLACE.finditer(page.text):
                if found[1].split()[0] not in _MONTHS:
                    yield found[1]
