"""Resumable making of steps: a chunk of verified questions becomes one file of rows and refusals.

As in `shards`, a file is named by the digest of all that can change it, so that whoever is killed
and started again repeats only unfinished chunks.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from builders.steps.composition import Candidate
from builders.steps.features import check_row
from builders.steps.questions import prepared
from builders.steps.rows import Made, Refused, StepRow
from builders.verified.teachers import Annotator
from builders.work.shards import code_digest
from safe_stepwise.records import (
    Feedback,
    Label,
    Question,
    Step,
    identity,
)
from safe_stepwise.store.codec import question_of
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.names import IDEAL, NO_PATH, REQUEST_FAILED
from safe_stepwise.taxonomy import MISSING_EVIDENCE

CHUNK_QUESTIONS = 100
"""Part of a file's identity, hence no option."""

NOT_IN_POOL = "a refined row's question is not in the pool"
OTHER_PASSAGES = "a refined row's passages are not those of this build"


class Maker(Annotator, Protocol):
    """Makes step rows of verified questions; picklable if it has ``own_processes``."""

    def make_all(self, questions: list[tuple[Question, Label]]) -> list[Made]:
        """What came of each question, in their order."""


@dataclass(frozen=True, slots=True)
class StepJob:
    """One chunk: verified rows of one split, and all that its file depends on.

    ``refined`` are rows of refinement that join those made of the same questions; of
    ``unverifiable`` questions, the maker can do without a reasoning path.
    """

    benchmark: str
    split: str
    rows: tuple[dict[str, Any], ...]
    maker: Maker
    seed: int
    path: Path
    refined: tuple[StepRow, ...] = ()
    unverifiable: bool = False


@dataclass(frozen=True, slots=True)
class StepShard:
    """What came of a chunk, without the rows themselves.

    ``passing`` are the questions with an ideal trajectory.
    """

    path: Path
    candidates: tuple[Candidate, ...]
    passing: tuple[str, ...]
    refused: tuple[Refused, ...]
    cached: bool

    @property
    def settled(self) -> bool:
        """Whether no reply of the maker's model is owed any more."""
        return not any(one.reason.startswith(REQUEST_FAILED) for one in self.refused)


def step_job(
    benchmark: str,
    split: str,
    rows: Sequence[dict[str, Any]],
    maker: Maker,
    seed: int,
    work: Path,
    refined: Sequence[StepRow] = (),
    unverifiable: bool = False,
) -> StepJob:
    """A chunk with its file's name under ``work``."""
    content = [code_digest(), maker.identity, maker.name, benchmark, split, seed, list(rows)]
    path = work / f"{benchmark}-{split}-{identity([*content, *map(asdict, refined)])[:24]}.jsonl.gz"
    return StepJob(benchmark, split, tuple(rows), maker, seed, path, tuple(refined), unverifiable)


def process(job: StepJob) -> StepShard:
    """Make one chunk's rows and store them, or find them stored.

    A stored chunk in which a request failed is made again: that reply is still owed.

    Raises whatever the maker does wrong, with the chunk's first question as a note. A row that is
    not valid is a `Refused`, not an error.
    """
    shard = stored(job)
    if shard is not None and shard.settled:
        return shard
    pairs, refused = _pairs(job)
    asked = [pair for pair in pairs if pair[1].reasoning_path or job.unverifiable]
    try:
        made = job.maker.make_all(asked)
    except Exception as error:
        error.add_note(f"in {job.benchmark} {job.split}, questions from {job.rows[0]['id']!r} on")
        raise
    if len(made) != len(asked):
        raise AssertionError(f"{len(made)} results for {len(asked)} questions")
    refined, strangers = _refined(job, [question for question, _ in asked])
    refused += strangers
    checked, passing = [], []
    for (question, _), one in zip(asked, made, strict=True):
        rows, bad = _checked(one.rows)
        if any(row.origin == IDEAL for row in rows):
            passing.append(question.id)
        if ours := refined.get(question.id):
            rows, more = _checked([*ours, *rows])
            bad += more
        refused += [*one.refused, *bad]
        checked.append(rows)
    _store(job, checked, passing, refused)
    return _summary(job.benchmark, job.path, cached=False)


def stored(job: StepJob) -> StepShard | None:
    """The chunk of an earlier run. One that cannot be read (a broken disk) is made again."""
    try:
        return _summary(job.benchmark, job.path, cached=True)
    except (OSError, EOFError, ValueError):
        return None


def read_rows(path: Path, ids: frozenset[str] | set[str]) -> Iterator[StepRow]:
    """The rows of a chunk with these ids."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            content = json.loads(line)
            if ids.isdisjoint(row["id"] for row in content["rows"]):
                continue
            questions = [question_of(q) for q in content["questions"]]
            for row in content["rows"]:
                if row["id"] in ids:
                    yield StepRow(
                        questions[row["question"]],
                        tuple(Step(*step) for step in row["previous"]),
                        Step(*row["step"]),
                        Feedback(*row["feedback"]),
                        row["origin"],
                        row["teacher"],
                    )


def _pairs(job: StepJob) -> tuple[list[tuple[Question, Label]], list[Refused]]:
    pairs, refused = [], []
    for row in job.rows:
        try:
            question, label = prepared(row, job.benchmark, job.split, job.seed)
        except ValueError as error:
            refused.append(Refused(job.benchmark, row["id"], "", None, str(error)))
            continue
        pairs.append((question, label))
        if not (label.reasoning_path or job.unverifiable):
            refused.append(Refused(job.benchmark, row["id"], "", None, NO_PATH))
    return pairs, refused


def _refined(
    job: StepJob, questions: Iterable[Question]
) -> tuple[dict[str, list[StepRow]], list[Refused]]:
    """The chunk's refined rows by question, and those that fit none of its questions."""
    known = {question.id: question for question in questions}
    found: dict[str, list[StepRow]] = {}
    refused = []
    for row in job.refined:
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
    labels: dict[Any, set[str]] = {}
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
        labels.setdefault(_asked(row), set()).add(row.feedback.error_type)
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
    return Refused(
        question.benchmark,
        question.id,
        row.feedback.error_type if row.origin != IDEAL else "",
        step.number,
        " ".join(reason.split()),
        step.text,
    )


def _store(
    job: StepJob,
    made: Sequence[Sequence[StepRow]],
    passing: Sequence[str],
    refused: Sequence[Refused],
) -> None:
    ids = [[row.id for row in rows] for rows in made]
    head = {
        "candidates": [
            [id_, row.question.id, row.feedback.error_type, row.step.number, row.origin]
            for rows, known in zip(made, ids, strict=True)
            for row, id_ in zip(rows, known, strict=True)
        ],
        "passing": passing,
        "refused": [astuple(one) for one in refused],
    }
    lines = [head, *(_line(rows, known) for rows, known in zip(made, ids, strict=True) if rows)]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    write_atomically(job.path, gzip.compress(text.encode(), compresslevel=1))


def _line(rows: Sequence[StepRow], ids: Sequence[str]) -> dict[str, Any]:
    questions: list[Question] = []
    content = []
    for row, id_ in zip(rows, ids, strict=True):
        if row.question not in questions:
            questions.append(row.question)
        content.append(
            {
                "id": id_,
                "question": questions.index(row.question),
                "previous": [astuple(step) for step in row.previous],
                "step": astuple(row.step),
                "feedback": astuple(row.feedback),
                "origin": row.origin,
                "teacher": row.teacher,
            }
        )
    return {"questions": [asdict(question) for question in questions], "rows": content}


def _summary(benchmark: str, path: Path, *, cached: bool) -> StepShard:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        head = json.loads(next(lines, ""))
    return StepShard(
        path=path,
        candidates=tuple(Candidate(id_, benchmark, *rest) for id_, *rest in head["candidates"]),
        passing=tuple(head["passing"]),
        refused=tuple(Refused(*one) for one in head["refused"]),
        cached=cached,
    )
