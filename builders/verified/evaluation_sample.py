"""The evaluation sample: some verifiable validation questions, each with ten shuffled passages."""

import hashlib
import heapq
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from safe_stepwise import prompts
from safe_stepwise.store.codec import passage_of

PASSAGES = 10
"""Passages of every sampled question, unless said otherwise (SAFE v1's evaluation setting)."""


class EvaluationSample:
    """Draws ``size`` questions from all that are offered, in bounded memory.

    Every choice is made by a hash of (seed, id), so neither the order of the rows nor the other
    rows change what becomes of a question. ``left_out`` counts rows that cannot have exactly so
    many ``passages``: fewer in all, or more gold ones.
    """

    def __init__(self, size: int, seed: int, passages: int = PASSAGES) -> None:
        self.left_out = 0
        self._size, self._seed, self._passages = size, seed, passages
        self._drawn: list[tuple[int, str, dict[str, Any]]] = []

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
            rank = -_rank(self._seed, id_, "question")
            if len(self._drawn) < self._size or rank > self._drawn[0][0]:
                content = table.slice(row, 1).to_pylist()[0]
                shown = with_passages(content, self._seed, self._passages)
                heapq.heappush(self._drawn, (rank, id_, shown))
                if len(self._drawn) > self._size:
                    heapq.heappop(self._drawn)

    def rows(self) -> list[dict[str, Any]]:
        """The sample, in the order of the draw."""
        return [row for _, _, row in sorted(self._drawn, key=lambda drawn: -drawn[0])]


def with_passages(row: dict[str, Any], seed: int, most: int = PASSAGES) -> dict[str, Any]:
    """The row with all gold passages, distractors up to so many in all, shuffled.

    Passage numbers of the decomposition follow; one whose passage was left out becomes None.
    """
    id_, passages = row["id"], row["passages"]
    gold = [n for n, passage in enumerate(passages, 1) if passage["is_gold"]]
    others = [n for n, passage in enumerate(passages, 1) if not passage["is_gold"]]
    others.sort(key=lambda n: _rank(seed, id_, f"draw {n}"))
    kept = [*gold, *others[: max(0, most - len(gold))]]
    # Ranked anew: the drawn distractors rank low in the draw and would all come first.
    kept.sort(key=lambda n: _rank(seed, id_, f"place {n}"))
    renumbered = {old: new for new, old in enumerate(kept, 1)}
    return {
        **row,
        "passages": [passages[n - 1] for n in kept],
        "decomposition": [{**hop, "passage": renumbered.get(hop["passage"])} for hop in row["decomposition"]],
    }


def rendered(row: Mapping[str, Any]) -> str:
    """A row as one prompt that asks for the answer alone: passages, then the question."""
    pages = [passage_of(page) for page in row["passages"]]
    return prompts.load("direct/input").ask(passages=pages, question=row["question"])


def _rank(seed: int, id_: str, purpose: str) -> int:
    digest = hashlib.sha256(f"{seed}\0{id_}\0{purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "big")
