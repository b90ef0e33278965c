"""How the time of a reader grows with its text: what is doubled may not take three times as long.

Time is the process's own, the best of several tries; what stays below `FLOOR` is too short to tell.
What grows too fast does so at every doubling: one alone may be where the allocator asks the system
for memory instead of reusing its own.
"""

from __future__ import annotations

import functools
import gc
import time
from collections.abc import Callable, Iterator

SIZE = 3_000
"""Characters of the smaller text: a quadratic reader takes long enough for twice as many."""
FLOOR = 0.03
RATIO = 2.6
TRIES = 12
"""More than a busy machine disturbs; what grows too fast stays so in all of them."""

UNITS = (
    *(" ", "\n", "\t", "\r", "\u200b", "\u0301", "e\u0301", "😀", "ﷺ", "Ünï ", "中", "\x00"),
    *("a", "A", "Ab-", "a ", "A ", "Aa ", "A. ", "a.b.", "A B C ", "Dr. A. B. ", "Mr. ", "... "),
    *("1", "1 ", "1,", "1.", "1,000 ", "19", "(1850 – 1900) ", "January 1, 1900 ", "1 January "),
    *(",", ", ", "; ", ": ", "-", " - ", "—", "— ", '"', "“", "”", "“A” ", "“A?", "'", "'s ", "’s "),
    *("(", ")", "[", "(a) ", "( (", "( born ", "~~ ", "? ", "!", "<b>", "http://a.b/", "a:b@"),
    *("the the ", "of the ", "A of the ", "and ", "Ana and ", "and Ors Velt ", "not ", "Vorr "),
    *("Oru Oru ", "Ana Vorr ", "Ana Bo Vorr, ", "in Oru ", "in Aa, ", "is a ", "is from ", "born "),
    *("X (1850 – 1900) was born. ", "born in 1850, died in 1900. ", "Her father died in ", "Oru. "),
    *("his father ", "son of ", "directed by ", "Vel is its capital ", "Kelvian ", "known as "),
    *("Step 1: ", "step 1 and ", "(Step 1) ", "Passage 1 ", "passage 1, ", "so ", "lived ", "#1 "),
    *("According to Passage 1, ", "is the answer ", "more than 1 ", "####ANSWER: ", "(logical) "),
    *("not to be confused with the ", "sk-", "key=", "a://", "bearer ", "-----BEGIN "),
)
LIFE = "Ana Vorr (1850 – 1900) was born in Oru. "
FRAMED = (
    *((LIFE, unit, "") for unit in ("A. ", "born in 1850. ", "a ", "Oru, ", "(", "He died. ")),
    *(("1 May", " ", "x"), ("May", " ", "x"), ("is", " ", "a"), ("Oru", " ", "(x"), ("—", " ", "x")),
    *(("Where was ", "A ", "lowercase born?"), ("Where was ", "(a) ", "lowercase born?")),
    *(("born ", "aed", "! died"), ("A ", "of the ", "A"), ("A", "-", "B"), ("Passage 1", ",", "x")),
    *(("According to Passage 2, Ana Vorr was ", unit, ".") for unit in ("in Aa, ", "A 1, ", "“")),
    *(("Ana Vorr is a ", "a ", ""), ("Ana Vorr is a film in ", "A, in ", "a"), ("“", "a ", "")),
    *(("Passage ", "1", ""), ("[", " ", "passage 1 x;"), ("Oru (", "(", ")a"), (".", "…", "Oru")),
    *(("", unit, " and Ors Velt (a)") for unit in ("A ", "A of ", "Ana-", "the ")),
)
TEXTS = (*(("", unit, "") for unit in UNITS), *FRAMED)

Reader = Callable[[str], object]


def text_of(frame: tuple[str, str, str], size: int) -> str:
    """A text of at least ``size`` characters: an opening, one unit again and again, an end."""
    opening, unit, end = frame
    return opening + unit * (size // len(unit) + 1) + end


def too_slow(reader: Reader) -> list[str]:
    """Texts on which a reader's time grows faster than its text, with both times."""
    return list(_too_slow(reader))


def _too_slow(reader: Reader) -> Iterator[str]:
    for frame in TEXTS:
        ratio = _doubled(reader, frame, SIZE)
        if ratio > RATIO and _doubled(reader, frame, 2 * SIZE) > RATIO:
            yield f"{frame}: {ratio:.1f} times as long"


def _doubled(reader: Reader, frame: tuple[str, str, str], size: int) -> float:
    small, large = text_of(frame, size), text_of(frame, 2 * size)
    return growth(lambda: reader(small), lambda: reader(large))


def growth(small: Callable[[], object], large: Callable[[], object]) -> float:
    """How many times as long the larger work takes; 0 where it is too short to tell."""
    least = _seconds(large)
    if least < FLOOR:
        return 0.0
    half = _seconds(small)
    for _ in range(TRIES):
        if least <= RATIO * half or least > 100 * FLOOR:
            break
        # One of the two was disturbed, or it grows too fast: the best of several tells.
        least, half = min(least, _seconds(large)), min(half, _seconds(small))
    return least / max(half, FLOOR / 10)


def _seconds(work: Callable[[], object]) -> float:
    forget()
    start = time.process_time()
    work()
    return time.process_time() - start


def forget() -> None:
    """Empty the caches of what was read, not those of the vocabulary."""
    for cache in _caches():
        cache.cache_clear()


@functools.cache
def _caches() -> tuple[functools._lru_cache_wrapper[object], ...]:
    ours = ("safe_stepwise.", "builders.")
    found = (one for one in gc.get_objects() if isinstance(one, functools._lru_cache_wrapper))
    return tuple(
        cache
        for cache in found
        if cache.__module__.startswith(ours)
        and cache.__name__ not in ("load", "word_list", "cue_pattern", "_patterns")
    )
