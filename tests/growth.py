"""By which power of its text's length the time of a reader grows.

Time is the process's own, the best of several tries, at five sizes; what stays below `FLOOR` is too short to
tell. What grows too fast does so at twice the sizes as well: one range alone may be where the allocator asks the
system for memory instead of reusing its own. No test asserts on seconds, or on the ratio of two timings.
"""

from __future__ import annotations

import functools
import gc
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from unittest import mock

from tests import sizes
from tests.memory.sitecustomize import SWITCH

SIZE = 4_000
"""Characters of the largest text: a quadratic reader takes long enough for them."""
FLOOR = 0.03
POWER = 1.5
"""Between work that grows as its text does, and with the square of it."""
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
PARSED = TEXTS[::5]
"""Texts for readers that parse: a fifth takes them as long as all take the others."""

Reader = Callable[[str], object]


def text_of(frame: tuple[str, str, str], size: int) -> str:
    """A text of at least ``size`` characters: an opening, one unit again and again, an end."""
    opening, unit, end = frame
    return opening + unit * (size // len(unit) + 1) + end


def too_slow(reader: Reader, texts: Sequence[tuple[str, str, str]] = TEXTS) -> list[str]:
    """Texts on which a reader's time grows much faster than its text, with the power by which it does."""
    return list(_too_slow(reader, texts))


def _too_slow(reader: Reader, texts: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    for frame in sizes.sample(texts, 40):

        def work(size: int, frame: tuple[str, str, str] = frame) -> object:
            return reader(text_of(frame, size))

        power = exponent(work, SIZE)
        if power > POWER and exponent(work, 2 * SIZE) > POWER:
            yield f"{frame}: grows with the power {power:.1f}"


def exponent(work: Callable[[int], object], largest: int, bound: float = POWER, floor: float = FLOOR) -> float:
    """The power of its size by which the time of some work grows; 0 where it is too short to tell.

    It is the slope of the line through five sizes from a quarter of the largest on, both logarithmic: were one
    of the times at an end twice what it is, the slope would change by 0.4. What is above the bound is tried again.
    """
    sizes = [round(largest / 2 ** (step / 2)) for step in range(5)]
    best = [_seconds(work, largest)]
    if best[0] < floor:
        return 0.0
    best += [_seconds(work, size) for size in sizes[1:]]
    for _ in range(TRIES):
        if _slope(sizes, best) <= bound or best[0] > 100 * FLOOR:
            break
        best = [min(seconds, _seconds(work, size)) for seconds, size in zip(best, sizes, strict=True)]
    return _slope(sizes, best)


def _slope(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    logarithms = [math.log(max(second, 1e-6)) for second in seconds]
    return statistics.linear_regression([math.log(size) for size in sizes], logarithms).slope


def _seconds(work: Callable[[int], object], size: int) -> float:
    forget()
    with mock.patch.dict(os.environ, {SWITCH: ""}):
        start = time.process_time()
        work(size)
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
        and cache.__name__ not in ("load", "word_list", "cue_pattern", "_compile_wordings", "_parser")
    )
