"""Read verified questions by their columns, and draw the questions and passages of the evaluation."""

import hashlib
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from builders.work.columns import features
from safe_stepwise import prompts
from safe_stepwise.records import NOISE_TYPES, Label, Question, Triple, select_passages
from safe_stepwise.store.codec import label_of, question_of, question_row
from safe_stepwise.store.names import EVAL, INPUT, LABELED, NOISE_LABELS, TRAIN, VALIDATION
from safe_stepwise.store.parquet import read_rows

EVALUATION_SIZE = 1_000
"""Default number of questions of a sample."""
SPLITS = (TRAIN, VALIDATION)
"""Splits with gold annotations."""
PASSAGES = 10
"""Default number of passages of a question to evaluate on (SAFE v1's evaluation setting)."""
Rows = Callable[[Any], Any]
"""Mask of the rows to read, from an Arrow batch."""


def config_features(dataset: str, config: str) -> Any:
    """Return a config's `datasets.Features`: a question's, with a label (``B_labeled``) or the prompt (``B_eval``)."""
    if dataset == NOISE_LABELS:
        return features("labelled_id", "label", noise_type=NOISE_TYPES)
    further = ["label"] if config.endswith(LABELED) else ["input"] if config.endswith(EVAL) else []
    return features("question", *further, noise_type=NOISE_TYPES)


def question_sha256(question: str) -> str:
    """Return 64 hex digits by which a label finds its question in a copy of the original benchmark."""
    return hashlib.sha256(question.encode("utf-8")).hexdigest()


class VerifiedQuestion(NamedTuple):
    """A question and its label."""

    question: Question
    label: Label

    @classmethod
    def of_row(cls, row: Mapping[str, Any], benchmark: str, split: str = "") -> "VerifiedQuestion":
        """Return the question and label of a labelled row; raise ``ValueError`` or ``KeyError`` for another row."""
        return cls(question_of(row, benchmark=benchmark, split=split), label_of(row))

    def sample(self, seed: int) -> "VerifiedQuestion":
        """Return the question with ten passages, and its renumbered label; raise ``ValueError`` for more gold ones."""
        if len(self.question.gold) > PASSAGES:
            raise ValueError(f"more than {PASSAGES} gold passages")
        question, places = with_passages(self.question, seed)

        def renumber(triples: Iterable[Triple]) -> tuple[Triple, ...]:
            return tuple(replace(t, passage=t.passage and places.get(t.passage)) for t in triples)

        path, graph = renumber(self.label.reasoning_path), renumber(self.label.knowledge_graph)
        return VerifiedQuestion(question, replace(self.label, reasoning_path=path, knowledge_graph=graph))


def verified_questions(
    files: Iterable[Path], benchmark: str, split: str = "", select: Rows | None = None
) -> Iterator[VerifiedQuestion]:
    """Yield the labelled rows of files, or those that ``select`` chooses; raise ``UserError`` for a bad file."""
    for file in files:
        yield from read_rows(file, partial(VerifiedQuestion.of_row, benchmark=benchmark, split=split), select=select)


def questions_in(
    files: Iterable[Path], benchmark: str, split: str = "", select: Rows | None = None
) -> Iterator[Question]:
    """Yield the questions of files, whose rows may lack labels."""
    for file in files:
        yield from read_rows(file, partial(question_of, benchmark=benchmark, split=split), select=select)


def is_sound(batch: Any) -> Any:
    """Return the mask of a batch's verified rows."""
    return pc.equal(batch.column("noise_type"), NOISE_TYPES.index("none"))


def select_ids(ids: Iterable[str], condition: Rows | None = None) -> Rows:
    """Return a selector of rows whose id is among ``ids`` and for which ``condition`` holds, if given."""
    id_array = pa.array(ids, pa.string())

    def select(batch: Any) -> Any:
        has_id = pc.is_in(batch.column("id"), value_set=id_array)
        return has_id if condition is None else pc.and_(condition(batch), has_id)

    return select


def with_passages(question: Question, seed: int, limit: int = PASSAGES) -> tuple[Question, Mapping[int, int]]:
    """Return the question with ``limit`` shuffled passages, all gold ones among them, and new numbers by old ones."""
    gold = [number for number, _ in question.gold]
    distractors = [n for n, passage in enumerate(question.passages, 1) if not passage.is_gold]
    distractors.sort(key=lambda n: draw(seed, question.id, f"draw {n}"))
    numbers = [*gold, *distractors[: max(0, limit - len(gold))]]
    # Ranked again: by the first rank all sampled distractors would come first.
    numbers.sort(key=lambda n: draw(seed, question.id, f"place {n}"))
    places = {old: new for new, old in enumerate(numbers, 1)}
    return select_passages(question, numbers), places


def draw(seed: int, id_: str, purpose: str) -> int:
    """Return a random number (64 bits) that depends only on the seed, a question's id and the purpose."""
    return int.from_bytes(hashlib.sha256(f"{seed}\0{id_}\0{purpose}".encode()).digest()[:8], "big")


class EvaluationSample:
    """A sample of ``size`` questions, ranked by a hash of (seed, id), drawn in bounded memory.

    ``left_out`` counts rows that cannot have ``passages`` passages: they have more gold ones, or, if ``exact``, fewer
    in all. With ``passages`` None no row is left out: a question has at most `PASSAGES`, or as many as are gold.
    """

    def __init__(self, size: int, seed: int, passages: int | None = PASSAGES, exact: bool = True) -> None:
        self.left_out = 0
        self.exact = exact and passages is not None
        self.passages = passages or PASSAGES
        self._size, self._seed, self._limit = size, seed, passages
        self._entries: list[tuple[int, Mapping[str, Any]]] = []

    def offer(self, table: pa.Table) -> None:
        """Add the rows of a table to the sample if they rank among the first."""
        entries = [*self._entries]
        for row in table.to_pylist():
            gold = sum(page["is_gold"] for page in row["passages"])
            if self._limit is None:
                self.passages = max(self.passages, gold)
            elif (self.exact and len(row["passages"]) < self.passages) or gold > self.passages:
                self.left_out += 1
                continue
            entries.append((draw(self._seed, row["id"], "question"), row))
        self._entries = heapq.nsmallest(self._size, entries, key=itemgetter(0))

    def rows(self) -> list[dict[str, Any]]:
        """Return the sample in the order of its ranks; each row has the columns of a question, and a prompt."""
        render, limit = prompts.load("direct/input").render_user, self._limit or PASSAGES
        questions = (question_of(row, benchmark="", split="") for _, row in self._entries)
        samples = [with_passages(question, self._seed, limit)[0] for question in questions]
        return [{**question_row(q), INPUT: render(passages=q.passages, question=q.question)} for q in samples]
