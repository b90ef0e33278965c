"""A chunk of verified questions: the steps that are made of them, checked, and what was refused."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from builders.steps.composition import Candidate
from builders.steps.features import check_row
from builders.steps.rows import Made, Refused, StepRow, row_of
from builders.verified.questions import VerifiedQuestion
from builders.work.shards import Annotator, read_shard
from safe_stepwise.records import Label, Question, as_object, identity
from safe_stepwise.store.code import code_digest
from safe_stepwise.store.codec import question_of
from safe_stepwise.store.names import IDEAL, NO_PATH, REQUEST_FAILED
from safe_stepwise.store.parsing import parse_json
from safe_stepwise.taxonomy import MISSING_EVIDENCE

CHUNK_QUESTIONS = 100
"""Part of a shard's identity, hence no option."""

NOT_IN_POOL = "a refined row's question is not in the pool"
OTHER_PASSAGES = "a refined row's passages are not those of this build"

SCHEMA = pa.schema([("ids", pa.list_(pa.string())), ("content", pa.string())])
"""One row a question: its step rows as JSON, with their ids beside, to be found by."""


class OtherWords(Protocol):
    """Makes step rows of some of many questions in words that are held back for tests."""

    def make_some(self, questions: Sequence[tuple[Question, Label]], places: Iterable[int]) -> list[Made]:
        """What came of the questions at some places, in their order."""


class Maker(Annotator, Protocol):
    """Makes step rows of verified questions; picklable if it has ``own_processes``."""

    @property
    def held_back(self) -> OtherWords | None:
        """The same with the words that are held back for tests, if it has such."""

    def make_all(self, questions: list[tuple[Question, Label]]) -> list[Made]:
        """What came of each question, in their order."""


@dataclass(frozen=True, slots=True)
class MadeSteps:
    """What came of a chunk, without the rows themselves.

    ``passing`` are the questions with an ideal trajectory.
    """

    candidates: tuple[Candidate, ...]
    passing: tuple[str, ...]
    refused: tuple[Refused, ...]

    @property
    def settled(self) -> bool:
        """Whether no reply of the maker's model is owed any more."""
        return not any(one.reason.startswith(REQUEST_FAILED) for one in self.refused)


@dataclass(frozen=True, slots=True)
class StepChunk:
    """Verified rows of one split and who makes steps of them, a `work.shards.Job`.

    ``refined`` are rows of refinement that join those made of the same questions; of
    ``unverifiable`` questions, the maker can do without a reasoning path.
    """

    benchmark: str
    split: str
    rows: tuple[VerifiedQuestion, ...]
    maker: Maker
    seed: int
    folder: Path
    refined: tuple[StepRow, ...] = ()
    unverifiable: bool = False

    @property
    def path(self) -> Path:
        """The shard file, named by content."""
        maker = self.maker
        code = code_digest(__name__, maker.__module__)
        head = [code, maker.identity, maker.name, self.benchmark, self.split, self.seed]
        key = identity([*head, self.rows, *self.refined])[:24]
        return self.folder / f"{self.benchmark}-{self.split}-{key}.arrow"

    @property
    def size(self) -> int:
        """Questions."""
        return len(self.rows)

    def make(self) -> tuple[MadeSteps, pa.RecordBatch]:
        """Have rows made and check them.

        Raises whatever the maker does wrong, with the chunk's first question as a note. A row that
        is not valid is a `Refused`, not an error.
        """
        asked, refused = pairs_of(self)
        refined, strangers = _refined(self, [question for question, _ in asked])
        refused += strangers
        candidates, passing, content = [], [], []
        for (question, _), made in zip(asked, self._made(asked), strict=True):
            rows, bad = _checked(made.rows)
            if rows:  # there are none but of a trajectory that passed, be its own refused
                passing.append(question.id)
            if ours := refined.get(question.id):
                rows, more = _checked([*ours, *rows])
                bad += more
            refused += [*made.refused, *bad]
            found = [_candidate(row) for row in rows]
            candidates += found
            if rows:
                ids = [one.id for one in found]
                content.append({"ids": ids, "content": json.dumps(_content(rows), default=as_object)})
        summary = MadeSteps(tuple(candidates), tuple(passing), tuple(refused))
        return summary, pa.RecordBatch.from_pylist(content, schema=SCHEMA)

    @property
    def summary_kind(self) -> type[MadeSteps]:
        """What is read back from a shard."""
        return MadeSteps

    def _made(self, asked: list[tuple[Question, Label]]) -> list[Made]:
        try:
            return self.maker.make_all(asked)
        except Exception as error:
            first = self.rows[0].question.id
            error.add_note(f"in {self.benchmark} {self.split}, questions from {first!r} on")
            raise


def read_rows(path: Path, ids: frozenset[str] | set[str]) -> Iterator[StepRow]:
    """The rows of a shard with these ids."""
    for part in read_shard(path).to_pylist():
        if ids.isdisjoint(part["ids"]):
            continue
        content = parse_json(part["content"])
        questions = [question_of(question) for question in content["questions"]]
        for id_, row in zip(part["ids"], content["rows"], strict=True):
            if id_ in ids:
                yield row_of(questions[row["question"]], row)


def _content(rows: Sequence[StepRow]) -> dict[str, Any]:
    """Step rows of a question, of which there may be several: with fewer passages, say."""
    questions = list(dict.fromkeys(row.question for row in rows))
    return {
        "questions": questions,
        "rows": [{"question": questions.index(row.question), **row.content} for row in rows],
    }


def _candidate(row: StepRow) -> Candidate:
    asked, type_ = row.question, row.feedback.error_type
    made = (row.id, asked.benchmark, asked.id, type_, row.step.number, row.origin)
    return Candidate(*made, row.borrowed, row.incomplete, row.family)


def pairs_of(chunk: StepChunk) -> tuple[list[tuple[Question, Label]], list[Refused]]:
    """The chunk's questions with their labels, and those that no steps can be made of."""
    pairs, refused = [], []
    for row in chunk.rows:
        try:
            question, label = row.shown(chunk.seed)
        except ValueError as error:
            refused.append(Refused(chunk.benchmark, row.question.id, "", None, str(error)))
            continue
        if label.reasoning_path or chunk.unverifiable:
            pairs.append((question, label))
        else:
            refused.append(Refused.of(question, NO_PATH))
    return pairs, refused


def _refined(chunk: StepChunk, questions: Iterable[Question]) -> tuple[dict[str, list[StepRow]], list[Refused]]:
    """The chunk's refined rows by question, and those that fit none of its questions."""
    known = {question.id: question for question in questions}
    found: dict[str, list[StepRow]] = {}
    refused = []
    for row in chunk.refined:
        asked, ours = row.question, known.get(row.question.id)
        if ours is None:
            refused.append(refused_row(row, NOT_IN_POOL))
        elif (asked.question, asked.passages) != (ours.question, ours.passages):
            refused.append(refused_row(row, OTHER_PASSAGES))
        elif row.feedback.error_type == MISSING_EVIDENCE:
            refused.append(refused_row(row, f"a refined row says {MISSING_EVIDENCE}"))
        else:
            found.setdefault(asked.id, []).append(replace(row, question=ours))
    return found, refused


def _checked(rows: Iterable[StepRow]) -> tuple[list[StepRow], list[Refused]]:
    """The rows that can be published, each once, without those of which two labels are claimed."""
    sound: dict[str, StepRow] = {}
    labels: defaultdict[Any, set[str]] = defaultdict(set)
    refused = []
    for row in rows:
        try:
            check_row(row)
        except ValueError as error:
            refused.append(refused_row(row, f"not a valid row: {error}"))
            continue
        id_ = row.id
        if id_ in sound:
            refused.append(refused_row(row, "the same row again"))
            continue
        sound[id_] = row
        labels[_asked(row)].add(row.feedback.error_type)
    kept = []
    for row in sound.values():
        said = labels[_asked(row)]
        if len(said) == 1:
            kept.append(row)
        else:
            refused.append(refused_row(row, f"two labels for one step: {', '.join(sorted(said))}"))
    return kept, refused


def _asked(row: StepRow) -> Any:
    return (row.question.passages, row.previous, row.step)


def refused_row(row: StepRow, reason: str) -> Refused:
    """The refusal of a whole row."""
    question, step = row.question, row.step
    meant = row.feedback.error_type if row.origin != IDEAL else ""
    said = " ".join(reason.split())
    return Refused(question.benchmark, question.id, meant, step.number, said, step.text)
