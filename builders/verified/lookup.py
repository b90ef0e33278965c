"""Labelled questions: read from a folder of ours, or labelled as they are read."""

import asyncio
import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from builders.benchmarks import BENCHMARKS, parse_row
from builders.benchmarks.sources import decode, raw_rows
from builders.verified.questions import among, questions_in, verified_questions
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.verification import doubted, verify
from safe_stepwise.errors import RowError, UserError
from safe_stepwise.records import Label, Passage, Question
from safe_stepwise.store import agreement, names, parquet

Labelled = tuple[Question, Label]


def labelled(folder: Path) -> Iterator[tuple[str, Iterator[Labelled]]]:
    """The benchmarks of a folder that `build_verified` or `regenerate` wrote, with all their rows.

    Raises ``UserError`` where there are none.
    """
    dataset = parquet.dataset_folder(folder, names.VERIFIED)
    if dataset is None or not (files := parquet.labeled_files(dataset)):
        raise _absent(folder, names.VERIFIED)
    for name, paths in files.items():
        yield name, verified_questions(paths, name)


def annotated(questions: Sequence[Question], folder: Path) -> list[Question]:
    """The questions of published steps with the answers and annotations that ``folder`` holds.

    Step rows show what a verifier may see. Who reasons over annotations needs the question as `build_verified` wrote
    it, its passages in the order of the steps' rows. One of them may be another question's, or give another value,
    which the annotations then give too. Raises ``UserError`` for a folder that is no verified set, or not the one that
    the steps were made of.
    """
    known: dict[tuple[str, str], Question] = {}
    dataset = parquet.dataset_folder(folder, names.VERIFIED)
    for benchmark in dict.fromkeys(question.benchmark for question in questions):
        ids = {question.id for question in questions if question.benchmark == benchmark}
        files = parquet.parquet_files(dataset, benchmark + names.LABELED) if dataset else []
        if not files:
            raise _absent(folder, f"{benchmark} rows of {names.VERIFIED}")
        for whole in questions_in(files, benchmark, wanted=among(sorted(ids))):
            known.setdefault((benchmark, whole.id), whole)  # as the steps were made: train's first
    for question in questions:
        if (question.benchmark, question.id) not in known:
            raise UserError(
                f"{folder}: holds no {question.benchmark} question {question.id!r}; give as "
                "--verified the folder that the steps were made of"
            )
    return [_annotated(q, known[q.benchmark, q.id], folder) for q in questions]


def verified_rows(
    benchmark: str, file: Path, split: str, ids: Container[str] | None = None, said: Callable[[str], object] = print
) -> Iterator[Labelled]:
    """The questions of a benchmark's file (those of ``ids``) with their labels by annotations.

    ``said`` hears of each row that can't be read.
    """
    teacher = AnnotationsTeacher()
    for row in raw_rows(str(file), split):
        try:
            question = parse_row(decode(row), benchmark, split)
        except RowError as error:
            said(f"left out: {row.location}: {error}")
            continue
        if ids is None or question.id in ids:
            yield question, asyncio.run(verify(question, teacher))


def once(rows: Iterable[Labelled]) -> list[Labelled]:
    """Rows without those whose id came before: a question may be in both splits."""
    first: dict[str, Labelled] = {}
    for row in rows:
        first.setdefault(row[0].id, row)
    return list(first.values())


def sure(
    rows: Mapping[str, Sequence[Labelled]], least: float, said: Callable[[str], object]
) -> dict[str, list[Labelled]]:
    """The rows with their labels as `doubted` leaves them; ``said`` hears if some have none."""
    unsaid = [label for found in rows.values() for _, label in found if label.confidence is None]
    if least and (noise := sum(label.unverifiable for label in unsaid)):
        said(f"{noise} labels of noise say no confidence: --min-confidence leaves them as they are")
    return {name: [(q, doubted(label, least)) for q, label in found] for name, found in rows.items()}


def _annotated(question: Question, whole: Question, folder: Path) -> Question:
    """The verified question with the passages that a step row shows, numbered as there."""
    numbered = list(reversed([*enumerate(whole.passages, 1)]))  # so that the first of equal ones counts
    same, titled = {(p.title, _text(p)): n for n, p in numbered}, {p.title: n for n, p in numbered}
    places: dict[int | None, int] = {}
    pages, changed = [], 0
    for place, page in enumerate(question.passages, 1):
        number = same.get((page.title, _text(page)))
        if number is None:  # altered, if the question has one of that title, else another's
            changed, number = changed + 1, titled.get(page.title)
        if number is None:
            pages.append(page)
            continue
        own = whole.passages[number - 1]
        places[number] = place
        if _text(own) == _text(page):
            pages.append(own)
        else:
            pages.append(replace(own, sentences=tuple(_cut(_text(page), own.sentences))))
            whole = _with_value(whole, own, page)
    if changed > 1 or whole.question != question.question:
        raise UserError(
            f"{folder}: its question {question.id!r} has other text or passages than the steps; "
            "give as --verified the folder that the steps were made of"
        )
    hops = tuple(replace(hop, passage=places.get(hop.passage)) for hop in whole.decomposition)
    return replace(whole, passages=tuple(pages), decomposition=hops)


def _text(page: Passage) -> str:
    """The text without the space at its end that an empty last sentence leaves.

    >>> _text(Passage("Oru", ("Oru is old.", ""))) == _text(Passage("Oru", ("Oru is old. ",)))
    True
    """
    return page.text.strip()


def _cut(text: str, sentences: Sequence[str]) -> Iterator[str]:
    """A text cut as the sentences of which it changes some: where one stays as it is, one begins.

    >>> list(_cut("Ana left Vel. It is old.", ("Ana left Oru.", "It is old.")))
    ['Ana left Vel.', 'It is old.']
    """
    start = 0
    for number, sentence in enumerate(sentences):
        end = start + len(sentence.strip())
        if text[start:end] != sentence.strip():
            left = (text.find(later.strip(), start) for later in sentences[number + 1 :])
            end = next((place - 1 for place in left if place >= start), len(text))
        yield text[start:end]
        start = min(end + 1, len(text))


def _with_value(question: Question, old: Passage, new: Passage) -> Question:
    """The question with the value that a passage was given, where an annotation has the old one."""
    values = [t.tail for t in question.evidence] + [hop.answer for hop in question.decomposition]
    for value in dict.fromkeys([*values, question.answer]):
        other = _put_for(value, _text(old), _text(new))
        if other is None:
            continue
        is_answer = other != value == question.answer
        return replace(
            question,
            answer=other if is_answer else question.answer,
            aliases=() if is_answer else question.aliases,
            evidence=tuple(replace(t, tail=other) if t.tail == value else t for t in question.evidence),
            decomposition=tuple(
                replace(hop, answer=other) if hop.answer == value else hop for hop in question.decomposition
            ),
        )
    return question


def _put_for(value: str, old: str, new: str) -> str | None:
    """What a text has where another has a value, if they differ in that alone.

    >>> _put_for("Oru", "Ana left Oru. Oru is old.", "Ana left New Vel. New Vel is old.")
    'New Vel'
    """
    first, *parts = re.split(rf"(?<!\w){re.escape(value)}(?!\w)", old)
    start = len(first)
    for part in parts:  # the first place where the other value stands
        if not new.startswith(value + part, start):
            break
        start += len(value + part)
    for places in range(1, len(parts) + 1):
        longer, rest = divmod(len(new) - len(old), places)
        other = new[start : start + len(value) + longer]
        if rest or not other:
            continue
        text = first
        for part in parts:  # either value between each two parts, whichever the new text has there
            text += (other if new.startswith(other + part, len(text)) else value) + part
        if text == new:
            return other
    return None


def _absent(folder: Path, what: str) -> UserError:
    return UserError(f"{folder}: no {what} in it; give the --output of build_verified or regenerate")


ROOT = Path(__file__).parents[2]
REAL_DATA = Path(os.environ.get("SAFE_STEPWISE_REAL_DATA") or ROOT.parent / "shared" / "data")
SPLITS = {"train": "train", "dev": "validation"}
"""The splits, by what their files are called."""


def real_rows(data: Path) -> tuple[dict[str, bool], dict[str, list[Labelled]]]:
    """Published labels by id, and our own of the benchmarks' rows in a data folder.

    Raises ``UserError`` where there are none.
    """
    published: dict[str, bool] = {}
    rows: dict[str, list[Labelled]] = {}
    for name in BENCHMARKS:
        labels = data / f"{name}_published_labels.jsonl"
        if labels.exists():
            published |= agreement.read_published(labels)
            files = ((data / f"{name}_{part}.jsonl", split) for part, split in SPLITS.items())
            rows[name] = once(row for f, split in files if f.exists() for row in verified_rows(name, f, split))
    if not rows:
        lacking = "no *_published_labels.jsonl there" if data.is_dir() else "no such folder"
        raise UserError(
            f"{data}: {lacking}; name the folder with --data, or score a build with --verified DIR --published FILE"
        )
    return published, rows
