"""Measure HotpotQA graphs and ideal trajectories against R4C's gold derivations.

python -m scripts.compare_derivations                     # the real data beside the checkout
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from builders.benchmarks import hotpotqa
from builders.benchmarks.sources import chunks, decode
from builders.steps.making import AnnotationsMaker
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.verification import verify
from evaluators.labels.derivations import Coverage, Derivation, coverage, summary
from safe_stepwise.checking.step_reading import read_step
from safe_stepwise.errors import UserError
from safe_stepwise.records import Label, Question
from scripts.cli import Parser, run, table
from scripts.compare_labels import REAL_DATA


def main(arguments: Sequence[str]) -> None:
    """Print the table; raises ``UserError`` where the data is not there."""
    parser = Parser(
        prog="python -m scripts.compare_derivations",
        description="Compare HotpotQA graphs and ideal trajectories with R4C's gold derivations.",
        epilog="A triple is covered where a passage's steps (or the triples of the graph) hold "
        "half of the content words of each of its ends; of three annotators the nearest counts.",
    )
    parser.add_argument(
        "--data", type=Path, default=REAL_DATA, help="hotpotqa_*.jsonl and r4c_derivations.jsonl"
    )
    options = parser.parse_args(arguments)
    print(table([HEADER, *measured(options.data)]))


HEADER = ("HotpotQA rows with a derivation", "rows", "passages", "triples", "whole")


def measured(data: Path) -> list[tuple[object, ...]]:
    """Rows of the table: what graphs and trajectories cover, of all rows and of those they have."""
    derivations = read_derivations(data / "r4c_derivations.jsonl")
    graphs: list[Coverage] = []
    steps: list[Coverage] = []
    seen = 0
    for question in _questions(data, derivations):
        seen += 1
        gold = derivations[question.id]
        label = asyncio.run(verify(question, AnnotationsTeacher()))
        if label.noise_type == "none":
            graphs.append(coverage(_told_by_graph(question, label), gold))
            told = _told_by_steps(question, label)
            if told:
                steps.append(coverage(told, gold))
    return [("all", seen, "", "", ""), _row("graph", graphs), _row("ideal trajectory", steps)]


def read_derivations(file: Path) -> dict[str, list[Derivation]]:
    """Derivations by question id; ``UserError`` where the file is missing or no R4C file."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        return {row["id"]: [_derivation(one) for one in row["derivations"]] for row in rows}
    except OSError:
        raise UserError(f"{file}: not found; give the folder that holds it with --data") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{file}: not a file of R4C derivations ({error!r})") from None


def _derivation(raw: Any) -> Derivation:
    return [(title, sentence, (head, rel, tail)) for title, sentence, (head, rel, tail) in raw]


def _questions(data: Path, wanted: Mapping[str, object]) -> Iterator[Question]:
    for name, split in (("train", "train"), ("dev", "validation")):
        file = data / f"hotpotqa_{name}.jsonl"
        for chunk in chunks(str(file), split, size=200, limit=None):
            for raw in chunk.rows:
                question = hotpotqa.parse(decode(raw), split)
                if question.id in wanted:
                    yield question


def _told_by_graph(question: Question, label: Label) -> dict[str, str]:
    told: dict[str, str] = {}
    for t in label.knowledge_graph:
        title = question.passages[(t.passage or 1) - 1].title
        told[title] = f"{told.get(title, '')} {t.head} {t.relation} {t.tail}"
    return told


def _told_by_steps(question: Question, label: Label) -> dict[str, str]:
    told: dict[str, str] = {}
    for row in AnnotationsMaker().make(question, label).rows:
        reading = read_step(row.step.text)
        if row.origin == "ideal" and row.step.kind == "Attribution":
            for number in reading.cited:
                title = question.passages[number - 1].title
                told[title] = f"{told.get(title, '')} {row.step.text}"
    return told


def _row(name: str, found: Sequence[Coverage]) -> tuple[object, ...]:
    shares = (
        summary(found, lambda c: c.passages),
        summary(found),
        summary(found, lambda c: float(c.whole)),
    )
    return (name, len(found), *(f"{share:.3f}" for share in shares))


if __name__ == "__main__":
    run(main)
