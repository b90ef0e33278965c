"""The order of rows for TRL's KTO, which takes a row's neighbour for another question's."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from safe_stepwise.records import identity

R = TypeVar("R")


def dealt(rows: Sequence[R], seed: int, question: Callable[[R], str]) -> list[R]:
    """Rows in an order in which neighbours are of different questions, as far as that can be.

    TRL's KTO takes a row's neighbour in its batch for an answer to another question. The rows of
    each are spread evenly; of two that still meet the second changes places with the next other,
    or where none is left goes back to between two others.

    >>> dealt(["a1", "a2", "b1", "b2"], 0, lambda row: row[0])
    ['b1', 'a1', 'b2', 'a2']
    """
    asked = [question(row) for row in rows]
    sizes, seen = Counter(asked), Counter[str]()
    place: list[tuple[float, int]] = []
    for number, name in enumerate(asked):
        place.append(((seen[name] + _share(seed, name)) / sizes[name], number))
        seen[name] += 1
    order = [number for _, number in sorted(place)]
    for at in range(1, len(order)):
        name = asked[order[at]]
        if name == asked[order[at - 1]]:
            others = (n for n in range(at + 1, len(order)) if asked[order[n]] != name)
            if (other := next(others, None)) is not None:
                order[at], order[other] = order[other], order[at]
            else:
                order.insert(_gap([asked[n] for n in order[:at]], name), order.pop(at))
    return [rows[number] for number in order]


def _gap(asked: Sequence[str], name: str) -> int:
    """The last place where a row of that question meets no other of it; if none, the end."""
    free = (at for at in reversed(range(len(asked))) if name not in asked[max(at - 1, 0) : at + 1])
    return next(free, len(asked))


def _share(seed: int, question: str) -> float:
    """A number of [0, 1) that depends on a question alone."""
    return int(identity([seed, question])[:8], 16) / 2**32
