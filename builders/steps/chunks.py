"""Makes and checks the steps of a chunk of verified questions, and stores them with the refusals."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from builders.steps.composition import Candidate
from builders.steps.making import AnnotationsMaker
from builders.steps.rows import Refused, StepResult, StepRow, check_row, pack_rows, unpack_rows
from builders.verified.questions import VerifiedQuestion
from builders.work.shards import Annotator, read_shard
from safe_stepwise.records import Question, as_object, identity
from safe_stepwise.store import boundary, names
from safe_stepwise.store.code import code_digest
from safe_stepwise.taxonomy import MISSING_EVIDENCE

CHUNK_QUESTIONS = 100
"""Questions of a chunk: part of a shard's identity, so it is not configurable."""

NOT_IN_POOL = "a refined row's question is not in the pool"
OTHER_PASSAGES = "a refined row's passages are not those of this build"

SCHEMA = pa.schema([("ids", pa.list_(pa.string())), ("content", pa.string())])
"""Columns of a shard: a row is a question, with its step rows as JSON and their ids."""


class Maker(Annotator, Protocol):
    """Makes step rows of verified questions; picklable if it ``is_cpu_bound``."""

    @property
    def held_back(self) -> AnnotationsMaker | None:
        """The maker with held-back wordings; None if it has none."""

    def make_all(self, questions: list[VerifiedQuestion]) -> list[StepResult]:
        """Make the steps of each question, in order."""


@dataclass(frozen=True, slots=True)
class MadeSteps:
    """The summary of a chunk, without its rows; ``passing`` are the questions with an ideal trajectory."""

    candidates: tuple[Candidate, ...]
    passing: tuple[str, ...]
    refused: tuple[Refused, ...]

    @property
    def is_complete(self) -> bool:
        return not any(refusal.reason.startswith(names.REQUEST_FAILED) for refusal in self.refused)


@dataclass(frozen=True, slots=True)
class StepChunk:
    """Verified questions of one split and their maker, a `work.shards.Job`; ``refined`` are rows that join them."""

    benchmark: str
    split: str
    questions: tuple[VerifiedQuestion, ...]
    maker: Maker
    seed: int
    folder: Path
    refined: tuple[StepRow, ...] = ()
    unverifiable: bool = False

    summary_kind: ClassVar[type[MadeSteps]] = MadeSteps

    @property
    def path(self) -> Path:
        maker = self.maker
        head = [code_digest(__name__, maker.__module__), maker.identity, maker.name]
        key = identity([*head, self.benchmark, self.split, self.seed, self.questions, *self.refined])[:24]
        return self.folder / f"{self.benchmark}-{self.split}-{key}.arrow"

    @property
    def size(self) -> int:
        return len(self.questions)

    def make(self) -> tuple[MadeSteps, pa.RecordBatch]:
        """Make the rows; an invalid one becomes a `Refused`. The maker's errors get the first question as a note."""
        pairs, refused = self.pairs()
        refined, strangers = self._refined_rows(question for question, _ in pairs)
        refused += strangers
        candidates, passing, content = [], [], []
        try:
            results = self.maker.make_all(pairs)
        except Exception as error:
            first, _ = self.questions[0]
            error.add_note(f"in {self.benchmark} {self.split}, questions from {first.id!r} on")
            raise
        for (question, _), result in zip(pairs, results, strict=True):
            rows, invalid = _check_rows(result.rows)
            if rows:  # a maker returns rows only for a trajectory that passed
                passing.append(question.id)
            if joining := refined.get(question.id):
                rows, invalid_joined = _check_rows([*joining, *rows])
                invalid += invalid_joined
            refused += [*result.refused, *invalid]
            candidates += [Candidate.of_row(row) for row in rows]
            if rows:
                text = json.dumps(pack_rows(rows), default=as_object)
                content.append({"ids": [row.id for row in rows], "content": text})
        summary = MadeSteps(tuple(candidates), tuple(passing), tuple(refused))
        return summary, pa.RecordBatch.from_pylist(content, schema=SCHEMA)

    def pairs(self) -> tuple[list[VerifiedQuestion], list[Refused]]:
        """Return the questions, with ten passages each, and their labels; and refusals of those without steps."""
        pairs, refused = [], []
        for verified in self.questions:
            try:
                sample = verified.sample(self.seed)
            except ValueError as error:
                refused.append(Refused.of_question(verified.question, str(error)))
                continue
            if verified.label.reasoning_path or self.unverifiable:
                pairs.append(sample)
            else:
                refused.append(Refused.of_question(verified.question, names.NO_PATH))
        return pairs, refused

    def _refined_rows(self, questions: Iterable[Question]) -> tuple[dict[str, list[StepRow]], list[Refused]]:
        """Return the refined rows by question, and refusals of those that fit no question."""
        by_id = {asked_question.id: asked_question for asked_question in questions}
        joining: dict[str, list[StepRow]] = {}
        refused = []
        for row in self.refined:
            refined_question, question = row.question, by_id.get(row.question.id)
            if question is None:
                refused.append(Refused.of_row(row, NOT_IN_POOL))
            elif (refined_question.question, refined_question.passages) != (question.question, question.passages):
                refused.append(Refused.of_row(row, OTHER_PASSAGES))
            elif row.feedback.error_type == MISSING_EVIDENCE:
                refused.append(Refused.of_row(row, f"a refined row says {MISSING_EVIDENCE}"))
            else:
                joining.setdefault(question.id, []).append(replace(row, question=question))
        return joining, refused


def read_rows(path: Path, ids: AbstractSet[str]) -> Iterator[StepRow]:
    """Yield the rows of a shard with these ids."""
    for record in read_shard(path).to_pylist():
        if not ids.isdisjoint(record["ids"]):
            rows = unpack_rows(boundary.parse_json(record["content"]))
            yield from (row for id_, row in zip(record["ids"], rows, strict=True) if id_ in ids)


def _check_rows(rows: Iterable[StepRow]) -> tuple[list[StepRow], list[Refused]]:
    """Return the valid rows, each once, without steps that have two labels; and the refusals."""
    sound: dict[str, StepRow] = {}
    labels: defaultdict[Any, set[str]] = defaultdict(set)
    refused = []
    for row in rows:
        try:
            check_row(row)
        except ValueError as error:
            refused.append(Refused.of_row(row, f"not a valid row: {error}"))
            continue
        if row.id in sound:
            refused.append(Refused.of_row(row, "the same row again"))
            continue
        sound[row.id] = row
        labels[row.question.passages, row.previous, row.step].add(row.feedback.error_type)
    claims = [(row, labels[row.question.passages, row.previous, row.step]) for row in sound.values()]
    twice = "two labels for one step: "
    refused += [Refused.of_row(row, twice + ", ".join(sorted(claimed))) for row, claimed in claims if len(claimed) > 1]
    return [row for row, claimed in claims if len(claimed) == 1], refused
