"""Reads labelled questions from a build's folder, or labels a benchmark's rows by annotations."""

import asyncio
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from builders.benchmarks import BENCHMARKS, parse_row, sources
from builders.verified.questions import questions_in, select_ids, verified_questions
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.verification import verify
from safe_stepwise.errors import RowError, UserError
from safe_stepwise.records import Label, Passage, Question
from safe_stepwise.store import names, parquet, published_labels

Labelled = tuple[Question, Label]


def labelled(folder: Path) -> Iterator[tuple[str, Iterator[Labelled]]]:
    """Yield each benchmark of a built folder with all its labelled rows; raise ``UserError`` where there are none."""
    dataset = parquet.dataset_folder(folder, names.VERIFIED)
    if dataset is None or not (files := parquet.labeled_files(dataset)):
        raise _absent(folder, names.VERIFIED)
    for name, paths in files.items():
        yield name, verified_questions(paths, name)


def add_annotations(questions: Sequence[Question], folder: Path) -> list[Question]:
    """Return the questions of published step rows with the answers and annotations that ``folder`` holds.

    A symbolic player needs them, with passages as in the step rows, of which one may be another question's, or have
    another value (as then do the annotations) or one more sentence. Raises ``UserError`` for another folder.
    """
    full_questions: dict[tuple[str, str], Question] = {}
    dataset = parquet.dataset_folder(folder, names.VERIFIED)
    for benchmark in dict.fromkeys(question.benchmark for question in questions):
        ids = {question.id for question in questions if question.benchmark == benchmark}
        files = parquet.parquet_files(dataset, benchmark + names.LABELED) if dataset else []
        if not files:
            raise _absent(folder, f"{benchmark} rows of {names.VERIFIED}")
        for full in questions_in(files, benchmark, select=select_ids(sorted(ids))):
            full_questions.setdefault((benchmark, full.id), full)  # as the steps were made: train's first
    for question in questions:
        if (question.benchmark, question.id) not in full_questions:
            raise UserError(
                f"{folder}: holds no {question.benchmark} question {question.id!r}; give as "
                "--verified the folder that the steps were made of"
            )
    return [_annotated(q, full_questions[q.benchmark, q.id], folder) for q in questions]


def questions_by_text(folder: Path, texts: Collection[str]) -> dict[str, Question]:
    """Return the questions of a built folder that have one of these texts, white space aside; raises ``UserError``."""
    texts_by_words = {" ".join(text.split()): text for text in texts}
    questions = (question for _, rows in labelled(folder) for question, _ in rows)
    return {texts_by_words[name]: q for q in questions if (name := " ".join(q.question.split())) in texts_by_words}


def verified_rows(benchmark: str, file: Path, split: str) -> Iterator[Labelled]:
    """Yield a file's questions with labels by annotations; print a line for each bad row."""
    teacher = AnnotationsTeacher()
    for row in sources.read_rows(str(file), split):
        try:
            question = parse_row(sources.decode(row), benchmark, split)
        except RowError as error:
            print(f"left out: {row.location}: {error}")
            continue
        yield question, asyncio.run(verify(question, teacher))


def drop_repeats(rows: Iterable[Labelled]) -> Iterator[Labelled]:
    """Yield the rows whose id no earlier row has, as a question may be in both splits."""
    ids = set[str]()
    for row in rows:
        if row[0].id not in ids:
            ids.add(row[0].id)
            yield row


def _annotated(question: Question, full: Question, folder: Path) -> Question:
    """Return the verified question with the passages of a step row, in their order."""
    numbered = list(reversed([*enumerate(full.passages, 1)]))  # so that of equal passages the first counts
    by_text, by_title = {(p.title, _text(p)): n for n, p in numbered}, {p.title: n for n, p in numbered}
    places: dict[int | None, int] = {}
    pages, changed = [], 0
    for place, page in enumerate(question.passages, 1):
        number = by_text.get((page.title, _text(page)))
        if number is None:  # altered if the question has its title, else another question's
            changed, number = changed + 1, by_title.get(page.title)
        if number is None:
            pages.append(page)
            continue
        original = full.passages[number - 1]
        places[number] = place
        if _text(original) == _text(page):
            pages.append(original)
        else:
            pages.append(replace(original, sentences=tuple(_cut(_text(page), original.sentences))))
            full = _with_value(full, original, page)
    if changed > 1 or full.question != question.question:
        raise UserError(
            f"{folder}: its question {question.id!r} has other text or passages than the steps; "
            "give as --verified the folder that the steps were made of"
        )
    hops = tuple(replace(hop, passage=places.get(hop.passage)) for hop in full.decomposition)
    return replace(full, passages=tuple(pages), decomposition=hops)


def _text(page: Passage) -> str:
    """Return the passage's text without the trailing space of an empty last sentence."""
    return page.text.strip()


def _cut(text: str, sentences: Sequence[str]) -> Iterator[str]:
    """Split an altered text at the original sentences that it still holds.

    >>> list(_cut("Ana left Vel. It is old.", ("Ana left Oru.", "It is old.")))
    ['Ana left Vel.', 'It is old.']
    """
    start = 0
    for number, sentence in enumerate(sentences):
        end = start + len(sentence.strip())
        if text[start:end] != sentence.strip():
            starts = (text.find(later.strip(), start) for later in sentences[number + 1 :])
            end = next((place - 1 for place in starts if place >= start), len(text))
        yield text[start:end]
        start = min(end + 1, len(text))
    if start < len(text):
        yield text[start:]


def _with_value(question: Question, old: Passage, new: Passage) -> Question:
    """Return the question with an annotated value replaced by the value in its altered passage."""
    values = [t.tail for t in question.evidence] + [hop.answer for hop in question.decomposition]
    for value in dict.fromkeys([*values, question.answer]):
        new_value = _replacement(value, _text(old), _text(new))
        if new_value is None:
            continue
        is_answer = new_value != value == question.answer
        return replace(
            question,
            answer=new_value if is_answer else question.answer,
            aliases=() if is_answer else question.aliases,
            evidence=tuple(replace(t, tail=new_value) if t.tail == value else t for t in question.evidence),
            decomposition=tuple(
                replace(hop, answer=new_value) if hop.answer == value else hop for hop in question.decomposition
            ),
        )
    return question


def _replacement(value: str, old: str, new: str) -> str | None:
    """Return the text that replaces ``value`` in ``new``, if ``old`` differs only in it; else None.

    >>> _replacement("Oru", "Ana left Oru. Oru is old.", "Ana left New Vel. New Vel is old.")
    'New Vel'
    """
    name = re.escape(value)
    prefix, *segments = re.split(rf"(?<!\w){name}(?!\w)", old)
    while segments and new.startswith(prefix):
        suffix = rf"(?:\1|{name})".join(map(re.escape, segments))  # two segments are joined by either value
        if match := re.fullmatch(f"{re.escape(prefix)}(.+?){suffix}", new, re.DOTALL):
            return match[1]
        prefix += value + segments.pop(0)
    return None


def _absent(folder: Path, content: str) -> UserError:
    return UserError(f"{folder}: no {content} in it; give the --output of build_verified or regenerate")


ROOT = Path(__file__).parents[2]
REAL_DATA = Path(os.environ.get("SAFE_STEPWISE_REAL_DATA") or ROOT.parent / "shared" / "data")
SPLITS = {"train": "train", "dev": "validation"}
"""The splits, by what their files are called."""


def real_rows(data: Path) -> tuple[dict[str, bool], dict[str, list[Labelled]]]:
    """Read published labels by id, and label a data folder's rows; raise ``UserError`` without published labels."""
    published: dict[str, bool] = {}
    rows: dict[str, list[Labelled]] = {}
    for name in BENCHMARKS:
        labels = data / f"{name}_published_labels.jsonl"
        if labels.exists():
            published |= published_labels.read_published(labels)
            files = ((data / f"{name}_{name_part}.jsonl", split) for name_part, split in SPLITS.items())
            all_rows = (row for f, split in files if f.exists() for row in verified_rows(name, f, split))
            rows[name] = [*drop_repeats(all_rows)]
    if not rows:
        lacking = "no *_published_labels.jsonl there" if data.is_dir() else "no such folder"
        raise UserError(
            f"{data}: {lacking}; name the folder with --data, or score a build with --verified DIR --published FILE"
        )
    return published, rows
