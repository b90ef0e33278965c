"""How alike a step is to a triple in words: what the paper's rule chooses triples by.

A retrieval takes texts and candidates and gives, for each text, its similarity to each candidate
(0-1). The paper takes Sentence-BERT's cosine (3.2.1, Eq. 1): `embeddings`, which needs an extra.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from safe_stepwise.language.text import words_of
from safe_stepwise.records import Triple

Retrieval = Callable[[Sequence[str], Sequence[str]], Sequence[Sequence[float]]]
"""(texts, candidates) to a row for each text: its similarity (0-1) to each candidate."""
_LETTERS = 3
_JOINTS = re.compile(r"[._/]+")


@lru_cache(maxsize=65536)
def verbalised(triple: Triple) -> str:
    """A triple as a sentence, "h r t." (3.2.1); a relation's joints are spaces.

    >>> verbalised(Triple("Oru", "location.languages_spoken", "Vel"))
    'Oru location languages spoken Vel.'
    """
    return f"{triple.head} {_JOINTS.sub(' ', triple.relation).strip()} {triple.tail}."


def words(texts: Sequence[str], candidates: Sequence[str]) -> list[list[float]]:
    """The cosine of the sets of words.

    >>> words(["Ana wed Ors."], ["Ana spouse Ors.", "Oru country Vel."])
    [[0.6666666666666666, 0.0]]
    """
    return _cosines(_words, texts, candidates)


def trigrams(texts: Sequence[str], candidates: Sequence[str]) -> list[list[float]]:
    """The cosine of the sets of three letters in a row within words, their edges counted.

    >>> [round(row[0], 2) for row in trigrams(["Ana", "Anna"], ["Ana"])]
    [1.0, 0.58]
    """
    return _cosines(_trigrams, texts, candidates)


def embeddings(texts: Sequence[str], candidates: Sequence[str]) -> list[list[float]]:
    """The cosine of Sentence-BERT's vectors, 0 where it is less.

    Raises ``UserError`` where the extra ``embeddings`` is not installed.
    """
    from safe_stepwise.checking.faithfulness.vectors import check, vector

    check()
    those = [vector(candidate) for candidate in candidates]
    rows = ([vector(text) @ other for other in those] for text in texts)
    return [[min(1.0, max(0.0, float(cosine))) for cosine in row] for row in rows]


RETRIEVALS: Mapping[str, Retrieval] = {"words": words, "trigrams": trigrams, "embeddings": embeddings}
"""By the name that a command line gives."""


@lru_cache(maxsize=16384)
def _words(text: str) -> frozenset[str]:
    return frozenset(words_of(text).split())


@lru_cache(maxsize=16384)
def _trigrams(text: str) -> frozenset[str]:
    padded = (f" {word} " for word in words_of(text).split())
    return frozenset(w[n : n + _LETTERS] for w in padded for n in range(len(w) - _LETTERS + 1))


Parts = Callable[[str], frozenset[str]]


def _cosines(parts: Parts, texts: Sequence[str], candidates: Sequence[str]) -> list[list[float]]:
    sizes, places = _index(parts, tuple(candidates))
    return [_row(parts(text), sizes, places) for text in texts]


@lru_cache(maxsize=512)
def _index(parts: Parts, candidates: tuple[str, ...]) -> tuple[tuple[int, ...], Mapping[str, Sequence[int]]]:
    found: dict[str, list[int]] = defaultdict(list)
    held = [parts(candidate) for candidate in candidates]
    for place, those in enumerate(held):
        for part in those:
            found[part].append(place)
    return tuple(map(len, held)), dict(found)


def _row(said: Iterable[str], sizes: Sequence[int], places: Mapping[str, Sequence[int]]) -> list[float]:
    said = frozenset(said)
    shared: dict[int, int] = defaultdict(int)
    for part in said:
        for place in places.get(part, ()):
            shared[place] += 1
    row = [0.0] * len(sizes)
    for place, count in shared.items():
        row[place] = count / math.sqrt(len(said) * sizes[place])
    return row
