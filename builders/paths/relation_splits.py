"""Train and test, twice: by question, and so that no template is on both sides.

Questions of one template differ in their topic alone, so that a set split by question asks of a model little more than
to know again what it was taught (a nearest neighbour reaches .97); that split by template is the honest one.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from safe_stepwise.store.names import BY_TEMPLATE, TEST, TRAIN

SPLITS = (TRAIN, TEST)
WAYS = ("", BY_TEMPLATE)
"""What the name of a config says of how it is split."""


@dataclass(frozen=True, slots=True)
class Splits:
    """Where each question goes."""

    seed: int
    share: float
    templates: frozenset[str]
    """Those held out for test."""

    def of(self, way: str, question: str, template: str) -> str:
        """The split of a question, by one of `WAYS`; the same words are always on one side."""
        if way == BY_TEMPLATE:
            return TEST if template in self.templates else TRAIN
        return TEST if _draw(self.seed, question) < self.share else TRAIN


def held_out(sizes: Mapping[str, int], hops: Mapping[str, int], share: float, seed: int) -> frozenset[str]:
    """Templates drawn until they hold ``share`` of the questions, of each number of hops.

    One that would take more is left in train, and the next is tried.

    >>> sorted(held_out({"a": 8, "b": 1, "c": 1}, {"a": 1, "b": 1, "c": 1}, 0.2, 0))
    ['b', 'c']
    """
    of: dict[int, list[str]] = defaultdict(list)
    for name in sizes:
        of[hops[name]].append(name)
    found: set[str] = set()
    for names in of.values():
        room = round(share * sum(sizes[name] for name in names))
        for name in sorted(names, key=lambda name: (_draw(seed, name), name)):
            if sizes[name] <= room:
                found.add(name)
                room -= sizes[name]
    return frozenset(found)


def _draw(seed: int, text: str) -> float:
    """A number of [0, 1) that depends on the seed and the text alone."""
    said = f"{seed}\0{text}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(said, digest_size=6).digest()) / 2**48
