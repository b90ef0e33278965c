"""Score noise labels against published ones, and list the rows on which the two differ.

python -m scripts.compare_labels                          # the real data beside the checkout
python -m scripts.compare_labels --verified build/musique --published labels.jsonl
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builders.benchmarks import BENCHMARKS, parse_row
from builders.benchmarks.sources import chunks, decode
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.verification import verify
from evaluators.labels.agreement import SOUND, agreement, lacks_entities, score_rows
from safe_stepwise.errors import RowError, UserError
from safe_stepwise.records import NOISE_TYPES, Question
from safe_stepwise.store.codec import question_of
from safe_stepwise.store.layout import dataset_folder, labeled_files
from safe_stepwise.store.names import VERIFIED
from scripts.cli import Parser, run, table

ROOT = Path(__file__).parents[1]
REAL_DATA = Path(os.environ.get("SAFE_STEPWISE_REAL_DATA") or ROOT.parent / "shared" / "data")
SPLITS = {"train": "train", "dev": "validation"}

EXAMPLES = """
A published file is JSONL with an "id" and either "unverifiable" (true or false) or a "truth" (a
noise type, as in a synthetic file). It is only ever looked up to score, never to label.

examples:
  # verify the rows of $SAFE_STEPWISE_REAL_DATA (default ../shared/data) and score them
  python -m scripts.compare_labels --disagreements build/disagreements.jsonl

  # labels that build_verified made
  python -m scripts.compare_labels --verified build/musique --published musique_published.jsonl
"""


@dataclass(frozen=True, slots=True)
class Labeled:
    """A question with the label that verification gave it."""

    question: Question
    unverifiable: bool
    noise_type: str
    explanation: str


def main(arguments: Sequence[str]) -> None:
    """Print the table and the disagreements; raises ``UserError`` for what the user can mend."""
    options = _parser().parse_args(arguments)
    if (options.verified is None) != (options.published is None):
        raise UserError("--verified and --published go together: give both, or neither")
    if options.verified:
        published = read_published(options.published)
        labeled = {name: _once(rows) for name, rows in built(options.verified)}
    else:
        published, labeled = real_rows(options.data)
    print(table([HEADER, *comparison(labeled, published)]))
    differ = [
        (name, row, published[row.question.id])
        for name, rows in labeled.items()
        for row in rows
        if published.get(row.question.id, row.unverifiable) != row.unverifiable
    ]
    _list(differ, options.show)
    if options.disagreements:
        write_disagreements(differ, options.disagreements)


HEADER = ("benchmark", "labels", "rows", "published", "found", "precision", "recall", "F1")


def comparison(
    labeled: Mapping[str, Sequence[Labeled]], published: Mapping[str, bool]
) -> list[tuple[object, ...]]:
    """Table rows: for each benchmark our labels, and the names-only baseline."""
    rows: list[tuple[object, ...]] = []
    if not any(row.question.id in published for found in labeled.values() for row in found):
        raise UserError("no id of the labelled rows is in the published labels: other rows?")
    for name, found in labeled.items():
        ours = {row.question.id: row.unverifiable for row in found}
        names = {row.question.id: lacks_entities(row.question) for row in found}
        shared = sum(id_ in published for id_ in ours)
        if not shared:
            print(f"left out: {name}: none of its ids is in the published labels")
            continue
        for what, labels in (("verification", ours), ("names alone", names)):
            _, *scores = score_rows([agreement(published, labels, what)])[0]
            rows.append((name, what, shared, *scores))
    return rows


def real_rows(data: Path) -> tuple[dict[str, bool], dict[str, list[Labeled]]]:
    """Published labels and our own for the three benchmarks' rows in a data folder."""
    published: dict[str, bool] = {}
    labeled: dict[str, list[Labeled]] = {}
    for name in BENCHMARKS:
        labels = data / f"{name}_published_labels.jsonl"
        if labels.exists():
            published |= read_published(labels)
            labeled[name] = _once(verified_rows(name, data))
    if not labeled:
        lacking = "no *_published_labels.jsonl there" if data.is_dir() else "no such folder"
        raise UserError(
            f"{data}: {lacking}; name the folder with --data, or score a build with --verified DIR"
            " --published FILE"
        )
    return published, labeled


def _once(rows: Iterable[Labeled]) -> list[Labeled]:
    """Rows without those whose id came before: a question may be in both splits."""
    first: dict[str, Labeled] = {}
    for row in rows:
        first.setdefault(row.question.id, row)
    return list(first.values())


def verified_rows(benchmark: str, data: Path) -> Iterator[Labeled]:
    """Rows of a benchmark's train and dev sample, verified; one that can't be read is printed."""
    teacher = AnnotationsTeacher()
    for name, split in SPLITS.items():
        path = data / f"{benchmark}_{name}.jsonl"
        for chunk in chunks(str(path), split, size=1000, limit=None) if path.exists() else ():
            for row in chunk.rows:
                try:
                    question = parse_row(decode(row), benchmark, split)
                except RowError as error:
                    print(f"left out: {row.location}: {error}")
                    continue
                label = asyncio.run(verify(question, teacher))
                yield Labeled(question, label.unverifiable, label.noise_type, label.explanation)


def built(folder: Path) -> Iterator[tuple[str, Iterator[Labeled]]]:
    """Benchmarks of a ``build_verified`` output folder with their labelled rows."""
    dataset = dataset_folder(folder, VERIFIED)
    if dataset is None or not (files := labeled_files(dataset)):
        raise UserError(
            f"{folder}: no {VERIFIED} in it; give the --output of build_verified or regenerate"
        )
    for benchmark, paths in files.items():
        yield benchmark, _labeled_rows(paths, benchmark)


def _labeled_rows(paths: Sequence[Path], benchmark: str) -> Iterator[Labeled]:
    from pyarrow import parquet

    # Not as a stream of `datasets`: its threads may outlive the last row and abort the exit.
    for path in paths:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1_000, use_threads=False):
                for row in batch.to_pylist():
                    question = question_of(row, benchmark=benchmark, split="")
                    noise_type = NOISE_TYPES[row["noise_type"]]
                    yield Labeled(question, row["unverifiable"], noise_type, row["explanation"])


def read_published(path: Path) -> dict[str, bool]:
    """Whether each id is unverifiable, from JSONL; raises ``UserError`` with file and line."""
    labels: dict[str, bool] = {}
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            labels[str(row["id"])] = _is_noise(row)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UserError(
                f'{path}:{number}: not a JSON object with "id" and "unverifiable" (true or false),'
                ' or "truth" (a noise type)'
            ) from None
    return labels


def _is_noise(row: Mapping[str, object]) -> bool:
    if isinstance(row.get("unverifiable"), bool):
        return bool(row["unverifiable"])
    if row["truth"] not in NOISE_TYPES:
        raise ValueError(row["truth"])
    return row["truth"] not in SOUND


def write_disagreements(differ: Sequence[tuple[str, Labeled, bool]], path: Path) -> None:
    """One JSON object a row on which the labels differ, for reading."""
    lines = [
        json.dumps(
            {
                "benchmark": benchmark,
                "id": row.question.id,
                "question": row.question.question,
                "answer": row.question.answer,
                "published_unverifiable": published,
                "noise_type": row.noise_type,
                "explanation": row.explanation,
            },
            ensure_ascii=False,
        )
        for benchmark, row, published in differ
    ]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None
    print(f"\n{len(differ)} disagreements in {path}")


def _list(differ: Sequence[tuple[str, Labeled, bool]], show: int) -> None:
    for published, title in ((True, "published as noise only"), (False, "found as noise only")):
        rows = [(name, row) for name, row, theirs in differ if theirs is published]
        print(f"\n{title}: {len(rows)}{f' (the first {show})' if 0 < show < len(rows) else ''}")
        for name, row in rows[:show]:
            question = row.question
            print(f"  {name} {question.id}: {question.question.strip()} -> {question.answer}")
            print(f"      {row.noise_type}: {row.explanation}")


def _parser() -> Parser:
    parser = Parser(
        prog="python -m scripts.compare_labels",
        description="Score noise labels against published ones and list the disagreements.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--data", type=Path, default=REAL_DATA, metavar="DIR", help="real rows and their labels")
    add("--verified", type=Path, metavar="DIR", help="an output of build_verified, to score")
    add("--published", type=Path, metavar="FILE", help="JSONL labels to score it against")
    add("--show", type=int, default=5, metavar="N", help="disagreements to print a side (5)")
    add("--disagreements", type=Path, metavar="FILE", help="write all of them here, as JSONL")
    return parser


if __name__ == "__main__":
    run(main)
