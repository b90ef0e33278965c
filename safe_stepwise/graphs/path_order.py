"""Checks that the triples of a relation path come in an order in which each follows.

A triple follows when the question or an earlier triple names one of its ends. So the branches of a comparison may come
in any order, and a hop may go against the direction of its relation. A hop that starts from an entity nobody has
reached is the coherence error of arXiv 2402.11199, section 3.1.
"""

import re
from collections.abc import Sequence

from safe_stepwise.language.text import normal_name, normal_words
from safe_stepwise.records import Triple

_ARTICLE = re.compile(r"^an? (?=\w)")


def end_key(name: str) -> str:
    """Normalise an end of a triple (its head or tail) for comparison; a non-empty name has a non-empty key.

    >>> end_key("The Silent Ford (film)"), end_key("a ford"), end_key("$")
    ('silent ford', 'ford', '$')
    """
    return _ARTICLE.sub("", normal_name(name)) or name.strip().casefold()


def starts_of(question: str, path: Sequence[Triple]) -> frozenset[str]:
    """Return the ends of a gold path that a reader may start from, as `end_key`.

    The question names most of them. The head of a triple that would not follow otherwise counts too, since annotations
    may spell a name differently from the question.

    >>> oru = Triple("Ana Vorr", "place of birth", "Oru")
    >>> kelvia = Triple("Oru", "country", "Kelvia")
    >>> sorted(starts_of("In which country was Ana Vorr born?", [oru, kelvia]))
    ['ana vorr']
    """
    starts = ends_in_question(question, path)
    while number := find_unreached(path, starts):
        starts |= {end_key(path[number - 1].head)}
    return starts


def ends_in_question(question: str, path: Sequence[Triple]) -> frozenset[str]:
    """Return the ends of a path that the question names, as `end_key`."""
    padded_question = f" {normal_words(question)} "
    ends = {end for triple in path for end in (triple.head, triple.tail)}
    forms = ((end, form) for end in ends for form in (end_key(end), normal_words(end)))
    return frozenset(end_key(end) for end, form in forms if form and f" {form} " in padded_question)


def find_unreached(path: Sequence[Triple], starts: frozenset[str]) -> int | None:
    """Return the number (from 1) of the first triple that does not follow from ``starts`` (`starts_of`), or None.

    >>> oru = Triple("Ana Vorr", "place of birth", "Oru")
    >>> kelvia = Triple("Oru", "country", "Kelvia")
    >>> find_unreached([oru, kelvia], frozenset({"ana vorr"}))
    >>> find_unreached([kelvia, oru], frozenset({"ana vorr"}))
    1
    """
    reached = set(starts)
    for number, triple in enumerate(path, 1):
        ends = {end_key(triple.head), end_key(triple.tail)}
        if not ends & reached:
            return number
        reached |= ends
    return None
