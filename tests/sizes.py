"""How many cases of a sweep, a grid or a property the tests run: a seeded sample, or every one.

`make test` runs every test on a sample of its cases, `make test-full` on all of them. The tests and
their assertions are the same. `tests/conftest.py` reads the switch, the variable `SWITCH`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Mapping
from typing import TypeVar

SWITCH = "SAFE_STEPWISE_TEST_SIZE"
SIZES = ("quick", "full")
Case = TypeVar("Case")


def is_full(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether tests run at full size; `ValueError` for a size that is none of `SIZES`."""
    size = environment.get(SWITCH) or "quick"
    if size not in SIZES:
        raise ValueError(f"{SWITCH}={size}: the size of the tests is {' or '.join(SIZES)}")
    return size == "full"


def size(full: int, quick: int) -> int:
    """The number of rows, tries or kills: the first at full size, the second in the quick suite."""
    return full if is_full() else quick


def examples(full: int) -> int:
    """The number of examples of a property: a tenth, and at least five, in the quick suite."""
    return size(full, min(full, max(5, full // 10)))


def sample(cases: Iterable[Case], quick: int, seed: object = 0) -> list[Case]:
    """Every case at full size, else a sample drawn by a seed; both in the order of the cases.

    >>> len(sample(range(100), 3)) in (3, 100)
    True
    """
    every = list(cases)
    if is_full() or len(every) <= quick:
        return every
    places = random.Random(f"{seed}").sample(range(len(every)), quick)
    return [every[place] for place in sorted(places)]
