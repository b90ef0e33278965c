"""The evaluation sample: some verifiable validation questions, each with ten shuffled passages."""

import heapq
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from builders.verified.questions import PASSAGES, draw, with_passages
from safe_stepwise import prompts
from safe_stepwise.records import Question
from safe_stepwise.store.codec import question_of, question_row
from safe_stepwise.store.names import INPUT


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
