"""Verified questions as a build wrote them, each decoded once: a question with its label."""

import hashlib
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from safe_stepwise import prompts
from safe_stepwise.records import NOISE_TYPES, Label, Question, Triple
from safe_stepwise.store.codec import label_of, question_of, question_row
from safe_stepwise.store.names import INPUT
from safe_stepwise.store.parquet import read_rows

EVALUATION_SIZE = 1_000
"""Questions of a sample, unless said otherwise."""
PASSAGES = 10
"""Passages of every question to evaluate on, unless said otherwise (SAFE v1's evaluation setting)."""
Rows = Callable[[Any], Any]
"""Says of an Arrow batch which of its rows to read."""


class VerifiedQuestion(NamedTuple):
    """A question and its label."""

    question: Question
    label: Label

    @classmethod
    def of_row(cls, row: Mapping[str, Any], benchmark: str, split: str = "") -> "VerifiedQuestion":
        """The question and label of a labelled row; ``ValueError`` or ``KeyError`` for what is none."""
        return cls(question_of(row, benchmark=benchmark, split=split), label_of(row))

    def shown(self, seed: int) -> "VerifiedQuestion":
        """The question as the evaluation shows it, in ten shuffled passages, with its label to match.

        Passage numbers of path and graph follow their passages. Raises ``ValueError`` for a question that cannot have
        ten passages because more are gold.
        """
        if len(self.question.gold) > PASSAGES:
            raise ValueError(f"more than {PASSAGES} gold passages")
        question, places = with_passages(self.question, seed)

        def moved(triples: Iterable[Triple]) -> tuple[Triple, ...]:
            return tuple(replace(t, passage=t.passage and places.get(t.passage)) for t in triples)

        path, graph = moved(self.label.reasoning_path), moved(self.label.knowledge_graph)
        return VerifiedQuestion(question, replace(self.label, reasoning_path=path, knowledge_graph=graph))


def verified_questions(
    files: Iterable[Path], benchmark: str, split: str = "", wanted: Rows | None = None
) -> Iterator[VerifiedQuestion]:
    """The labelled rows of some files, or those that are ``wanted``; raises as `read_rows`."""
    for file in files:
        yield from read_rows(file, partial(VerifiedQuestion.of_row, benchmark=benchmark, split=split), wanted=wanted)


def questions_in(
    files: Iterable[Path], benchmark: str, split: str = "", wanted: Rows | None = None
) -> Iterator[Question]:
    """The questions alone, of files that need have no labels."""
    for file in files:
        yield from read_rows(file, partial(question_of, benchmark=benchmark, split=split), wanted=wanted)


def is_sound(batch: Any) -> Any:
    """The rows of a batch that were verified."""
    return pc.equal(batch.column("noise_type"), NOISE_TYPES.index("none"))


def is_unverifiable(batch: Any) -> Any:
    """The rows of a batch that are noise."""
    return batch.column("unverifiable")


def among(ids: Iterable[str], also: Rows | None = None) -> Rows:
    """The rows of a batch that have one of some ids, and are those of another choice, if one is given."""
    known = pa.array(ids, pa.string())

    def chosen(batch: Any) -> Any:
        named = pc.is_in(batch.column("id"), value_set=known)
        return named if also is None else pc.and_(also(batch), named)

    return chosen


def with_passages(question: Question, seed: int, most: int = PASSAGES) -> tuple[Question, Mapping[int, int]]:
    """The question with all gold passages, distractors up to so many in all, shuffled; and each number's new one.

    Passage numbers of the decomposition follow; one whose passage was left out becomes None.
    """
    gold = [number for number, _ in question.gold]
    others = [n for n, passage in enumerate(question.passages, 1) if not passage.is_gold]
    others.sort(key=lambda n: draw(seed, question.id, f"draw {n}"))
    kept = [*gold, *others[: max(0, most - len(gold))]]
    # Ranked anew: the drawn distractors rank low in the draw and would all come first.
    kept.sort(key=lambda n: draw(seed, question.id, f"place {n}"))
    places = {old: new for new, old in enumerate(kept, 1)}
    hops = tuple(replace(hop, passage=places.get(hop.passage or 0)) for hop in question.decomposition)
    return replace(question, passages=tuple(question.passages[n - 1] for n in kept), decomposition=hops), places


def draw(seed: int, id_: str, purpose: str) -> int:
    """A number that depends on nothing but the seed, a question's id and what is drawn."""
    digest = hashlib.sha256(f"{seed}\0{id_}\0{purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "big")


class EvaluationSample:
    """Draws ``size`` questions from all that are offered, in bounded memory.

    Every choice is made by a hash of (seed, id), so neither the order of the rows nor the other rows change what
    becomes of a question. ``left_out`` counts rows that cannot have exactly so many ``passages``: fewer in all, or
    more gold ones.
    """

    def __init__(self, size: int, seed: int, passages: int = PASSAGES) -> None:
        self.left_out = 0
        self._size, self._seed, self._passages = size, seed, passages
        self._drawn: list[tuple[int, str, Question]] = []

    def offer(self, table: pa.Table) -> None:
        """Consider the rows of a table with the row columns."""
        passages = table.column("passages").combine_chunks()
        total = pc.list_value_length(passages).to_pylist()
        gold = [0] * table.num_rows
        is_gold = passages.flatten().field("is_gold").to_pylist()
        for row, flag in zip(pc.list_parent_indices(passages).to_pylist(), is_gold, strict=True):
            gold[row] += flag
        for row, id_ in enumerate(table.column("id").to_pylist()):
            if total[row] < self._passages or gold[row] > self._passages:
                self.left_out += 1
                continue
            rank = -draw(self._seed, id_, "question")
            if len(self._drawn) < self._size or rank > self._drawn[0][0]:
                (content,) = table.slice(row, 1).to_pylist()
                question = question_of(content, benchmark="", split="")
                shown, _ = with_passages(question, self._seed, self._passages)
                heapq.heappush(self._drawn, (rank, id_, shown))
                if len(self._drawn) > self._size:
                    heapq.heappop(self._drawn)

    def rows(self) -> list[dict[str, Any]]:
        """The sample, in the order of the draw: each question's columns, and question and passages as one prompt."""
        drawn = sorted(self._drawn, key=lambda entry: -entry[0])
        return [{**question_row(question), INPUT: rendered(question)} for _, _, question in drawn]


def rendered(question: Question) -> str:
    """A question as one prompt that asks for the answer alone: passages, then the question."""
    return prompts.load("direct/input").ask(passages=question.passages, question=question.question)
