"""Whether two names of a graph mean one entity, and whether a text holds a name."""

from functools import lru_cache

from safe_stepwise.graphs.knowledge_graph import entity_key
from safe_stepwise.language.text import has_words, normal_name, qualifier, words_of
from safe_stepwise.records import Triple


@lru_cache(maxsize=65536)
def is_same(one: str, other: str) -> bool:
    """Whether two names mean one: by `entity_key`, or one is the other without what describes it.

    What describes is what stands in brackets or follows a comma; two that are described otherwise are two.

    >>> is_same("Ors Velt", "Ors Velt, 1st Earl of Oru"), is_same("3 May 1901", "May 3, 1901")
    (True, True)
    >>> is_same("Ors Velt (painter)", "Ors Velt (poet)"), is_same("Oru, Kelvia", "Oru, Veld")
    (False, False)
    """
    if entity_key(one) == entity_key(other):
        return True
    (bare, said), (other_bare, other_said) = _described(one), _described(other)
    return bool(bare) and bare == other_bare and not (said and other_said)


@lru_cache(maxsize=32768)
def _described(name: str) -> tuple[str, str]:
    bare, _, rest = name.partition(",")
    return normal_name(bare), qualifier(name) or words_of(rest)


def holds(text: str, name: str) -> bool:
    """Whether a text holds a name, word for word; one without words holds, and is in, nothing.

    >>> holds("The Greek Language", "greek"), holds("Brazilian real", "Brazil"), holds("Oru", "?")
    (True, False, False)
    """
    words = words_of(name)
    return bool(words) and has_words(words_of(text), words)


def is_alike(one: str, other: str) -> bool:
    """Whether one of two answers holds the other (the paper's comparison, C.3), or they are one.

    >>> is_alike("Greek", "Greek Language"), is_alike("8 March 1975", "March 8, 1975")
    (True, True)
    """
    if holds(one, other) or holds(other, one):
        return True
    if words_of(one) and words_of(other):
        return entity_key(one) == entity_key(other)
    return bool(one.strip()) and one.strip() == other.strip()


@lru_cache(maxsize=65536)
def fact_of(triple: Triple) -> tuple[str, str, str]:
    """What a triple says, however its ends are spelled and wherever it was read.

    >>> fact_of(Triple("The Dune", "date", "May 3, 1901", 1)) == fact_of(
    ...     Triple("Dune", "date", "3 May 1901"))
    True
    """
    return entity_key(triple.head), triple.relation, entity_key(triple.tail)
