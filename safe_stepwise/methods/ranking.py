"""Ranks passages, or other short texts, by the words that they share with a query: by a sum of our own, or by BM25.

Scores of BM25 are those of `bm25s` with its own defaults (Lucene's BM25, k1 = 1.5, b = 0.75; English stop words are
left out). Among texts with the same score, the earlier comes first.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any

from safe_stepwise.records import Passage

_WORD = re.compile(r"\w+")
_COMMON = frozenset(
    "a an and are at by did do does for from had has have he her his how in is it its of on or she "
    "that the their they this to was were what when where which who whom whose with".split()
)


def rank(query: str, titles: Sequence[str], texts: Sequence[str]) -> list[int]:
    """Return the indices of the texts that share a word with a query, the best first; of equal ones the first.

    Words of a title count twice, rare words more than common ones. ``titles`` has one for each text.

    >>> rank("What lies on the Vel?", ["Oru", "Vel", "Isk"], ["It lies on the Vel.", "A river.", "A town."])
    [0, 1]
    """
    sought = terms(query)
    in_titles, in_texts = [terms(title) for title in titles], [terms(text) for text in texts]
    counts = Counter(term for pair in zip(in_titles, in_texts, strict=True) for term in pair[0] | pair[1])
    # Summed exactly: a set's order, and so a rounding, differs from run to run.
    scores = [
        math.fsum((2 * (term in title) + (term in text)) / (counts[term] or 1) for term in sought)
        for title, text in zip(in_titles, in_texts, strict=True)
    ]
    return sorted((n for n, score in enumerate(scores) if score > 0), key=lambda n: -scores[n])


def plain(text: str) -> str:
    """Return the words of a text, folded, with single blanks."""
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def terms(text: str) -> frozenset[str]:
    """Return the words of a text without common ones; all words if it has no others."""
    words = frozenset(plain(text).split())
    return words - _COMMON or words


def index_passages(passages: Sequence[Passage]) -> Any:
    """Index titles and texts for `rank_by_bm25`; return None if none holds a word to search for."""
    import bm25s

    terms = _terms([f"{page.title} {page.text}" for page in passages])
    if not any(terms):
        return None
    index = bm25s.BM25()
    index.index(terms, show_progress=False)
    return index


def rank_by_bm25(index: Any, query: str, top: int) -> tuple[int, ...]:
    """Return the places, from 0, of the ``top`` best passages; fewer if fewer have a term of the query."""
    import numpy as np

    terms = [term for term in _terms([query])[0] if index and term and term in index.vocab_dict]
    if not terms:
        return ()
    scores = index.get_scores(terms)
    least = np.partition(scores, -top)[-top] if top < len(scores) else 0
    among = np.flatnonzero((scores >= least) & (scores > 0))
    order = among[np.argsort(-scores[among], kind="stable")]
    return tuple(map(int, order[:top]))


def _terms(texts: Sequence[str]) -> list[list[str]]:
    import bm25s

    tokens: list[list[str]] = bm25s.tokenize(list(texts), return_ids=False, show_progress=False, allow_empty=False)
    return tokens
