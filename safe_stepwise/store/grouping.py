"""Groups items by a key."""

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
K = TypeVar("K")


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Group items by a key; groups and their members keep the items' order.

    >>> grouped(["a1", "b1", "a2"], lambda item: item[0])
    {'a': ['a1', 'a2'], 'b': ['b1']}
    """
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
