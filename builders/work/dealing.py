"""The order of rows for TRL's KTO, which takes a row's neighbour for another question's."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from safe_stepwise.records import identity

R = TypeVar("R")


def dealt(rows: Sequence[R], seed: int, question: Callable[[R], str]) -> list[R]:
    """Rows in an order in which neighbours are of different questions, as far as that can be.

    TRL's KTO takes a row's neighbour in its batch for an answer to another question. The rows of each are spread
    evenly; of two that still meet the second changes places with the next other, or where none is left goes back to
    between two others.

    >>> dealt(["a1", "a2", "b1", "b2"], 0, lambda row: row[0])
    ['b1', 'a1', 'b2', 'a2']
    """
    names = list(map(question, rows))
    sizes, seen = Counter(names), Counter[str]()
    place: list[tuple[float, int]] = []
    for number, name in enumerate(names):
        share = int(identity([seed, name])[:8], 16) / 2**32  # depends on the question alone
        place.append(((seen[name] + share) / sizes[name], number))
        seen[name] += 1
    order = [number for _, number in sorted(place)]
    for at in range(1, len(order)):
        name = names[order[at]]
        if name == names[order[at - 1]]:
            later = next((n for n in range(at + 1, len(order)) if names[order[n]] != name), None)
            if later is not None:
                order[at], order[later] = order[later], order[at]
            else:
                order.insert(_gap([names[n] for n in order[:at]], name), order.pop(at))
    return [rows[number] for number in order]


def _gap(names: Sequence[str], name: str) -> int:
    """The last place where a row of that question meets no other of it; if none, the end."""
    free = (at for at in reversed(range(len(names))) if name not in names[max(at - 1, 0) : at + 1])
    return next(free, len(names))
