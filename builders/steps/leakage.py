"""Finds questions that have to be in one split, as they share gold passages or are near-duplicates.

Two questions are near-duplicates if at least half of the word 8-grams (of question and gold passages) of the one with
fewer are in the other. An 8-gram of more than fifty questions is boilerplate: two questions are not compared because
they share it, but it counts if they are compared. Steps of unrelated questions may still be equal: `find_copies`.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from networkx.utils import UnionFind

from builders.steps.rows import StepRow
from safe_stepwise.records import Question
from safe_stepwise.store.grouping import grouped

WORDS = 8
CONTAINMENT = 0.5
BOILERPLATE = 50
"""An 8-gram in more questions than this is boilerplate."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a question that can leak: a key of its set of gold passages, and its 8-grams."""

    passages: bytes
    grams: frozenset[int]


def document(question: Question) -> Document:
    """Make the document of a question; a text of fewer than eight words is one gram."""
    gold = sorted({(p.title, p.text) for _, p in question.gold})
    digest = hashlib.sha256(repr(gold if gold else question.question).encode("utf-8", "replace"))
    grams: set[int] = set()
    for text in (question.question, *(text for _, text in gold)):
        words = _WORD.findall(text.casefold())
        for start in range(max(len(words) - WORDS, 0) + 1):
            gram = " ".join(words[start : start + WORDS]).encode("utf-8", "replace")
            grams.add(int.from_bytes(hashlib.blake2b(gram, digest_size=8).digest()))
    return Document(digest.digest(), frozenset(grams))


def near(document: Document, reference: Document) -> bool:
    """Whether two documents share their passages or are near-duplicates."""
    if document.passages == reference.passages:
        return True
    return len(document.grams & reference.grams) >= CONTAINMENT * min(len(document.grams), len(reference.grams))


class DocumentIndex:
    """An index of documents, such as the evaluation sample, that finds near-duplicates."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents = list(documents)
        self._passages = {d.passages for d in self._documents}
        self._holders = _holders(self._documents)

    def near(self, document: Document) -> bool:
        """Whether any of the documents is a near-duplicate of this one."""
        if document.passages in self._passages:
            return True
        holders = (self._holders.get(gram, ()) for gram in document.grams)
        sharing = {number for numbers in holders if len(numbers) <= BOILERPLATE for number in numbers}
        return any(near(document, self._documents[number]) for number in sharing)


def groups(documents: Mapping[str, Document], links: Iterable[tuple[str, str]] = ()) -> list[list[str]]:
    """Group keys that near-duplicates or ``links`` connect; groups are in the order of their first keys."""
    keys = sorted(documents)
    joined = UnionFind(range(len(keys)))
    numbers = {key: number for number, key in enumerate(keys)}
    linked = {(numbers[a], numbers[b]) for a, b in links if a in numbers and b in numbers}
    for a, b in (*sorted(linked), *_pairs([documents[key] for key in keys])):
        is_apart = joined[a] != joined[b]
        if is_apart and ((a, b) in linked or near(documents[keys[a]], documents[keys[b]])):
            joined.union(a, b)
    together = grouped(range(len(keys)), joined.__getitem__)
    return [[keys[number] for number in numbers] for numbers in together.values()]


def held_out(groups: Sequence[Sequence[str]], rows: Mapping[str, int], size: int) -> list[int]:
    """Choose groups, as they fit, for a test split of ``size`` rows or barely more; one stays in train."""
    sizes = [sum(rows[key] for key in group) for group in groups]
    chosen: list[int] = []
    larger: list[int] = []
    for number, group_size in enumerate(sizes):
        (chosen if group_size <= size else larger).append(number)
        size -= group_size if group_size <= size else 0
    if size and len(larger) > 1:
        chosen.append(min(larger, key=lambda number: (sizes[number], number)))
    return chosen


def find_copies(test: Iterable[StepRow], train: Iterable[StepRow]) -> frozenset[str]:
    """Return ids of test rows whose step is in train, case and white space aside; final answers are exempt."""

    def plain(row: StepRow) -> str:
        return " ".join(row.step.text.casefold().split())

    train_texts = set(map(plain, train))
    return frozenset(row.id for row in test if row.step.kind != "Final Answer" and plain(row) in train_texts)


def _pairs(documents: Sequence[Document]) -> Iterator[tuple[int, int]]:
    """Yield pairs to compare: they have the same passages, or share a gram that is not boilerplate."""
    by_passages: dict[bytes, int] = {}
    for number, document in enumerate(documents):
        first = by_passages.setdefault(document.passages, number)
        if first != number:
            yield first, number
    # The grams of a passage are mostly held by the same questions: each such set is looked at once.
    sets = {tuple(h) for h in _holders(documents).values() if 1 < len(h) <= BOILERPLATE}
    for together in sorted(sets):
        yield from combinations(together, 2)


def _holders(documents: Sequence[Document]) -> dict[int, list[int]]:
    """Return the numbers of the documents that have each 8-gram."""
    holders: dict[int, list[int]] = defaultdict(list)
    for number, document in enumerate(documents):
        for gram in document.grams:
            holders[gram].append(number)
    return holders
