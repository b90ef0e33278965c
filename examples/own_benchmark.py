"""Verify a benchmark of your own: which of its questions its own passages can answer.

    python -m examples.own_benchmark --input examples/own_benchmark.jsonl --output build/own

Rows may have any fields: one function (`convert_row` below) converts them to the format of a benchmark
that has a reader. Here that is 2WikiMultihopQA's: facts as triples, and passages by title. Each question
keeps its row and gets a label, a reason and the path of evidence; no model is asked. The five example
rows are made up, and two of them are noise.

To support a benchmark permanently, write one file like builders/benchmarks/twowiki.py instead.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safe_stepwise.commands.reading import read_rows
from safe_stepwise.errors import UserError
from safe_stepwise.store import boundary, tables
from scripts import build_verified
from scripts.cli import run

ROWS = Path(__file__).with_name("own_benchmark.jsonl")
CONFIG = "2wikimultihopqa"
"""The benchmark whose format the rows get, and so the config's name."""


@dataclass(frozen=True, slots=True)
class Row:
    """The fields of an input row."""

    id: str
    question: str
    answer: str
    facts: Sequence[tuple[str, str, str]]
    pages: Mapping[str, Sequence[str]]


def main(arguments: Sequence[str]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m examples.own_benchmark", description=__doc__, formatter_class=form
    )
    parser.add_argument("--input", type=Path, default=ROWS, help="JSONL")
    parser.add_argument("--output", type=Path, default=Path("build/own"), help="(build/own)")
    options = parser.parse_args(arguments)
    build(options.input, options.output)
    table = [("id", "label", "why"), *labels(options.output / "safe-verified-multihop")]
    print(f"\n{tables.text_table(table)}")


def build(rows: Path, output: Path) -> None:
    """Verify the rows of a file, and write the datasets into a folder."""
    by_id: dict[str, dict[str, Any]] = {}
    for place, row in read_rows(rows):
        converted = convert_row(place, row)
        if converted["_id"] in by_id:
            raise UserError(f"{place}: the id {converted['_id']} stands in a row before")
        by_id[converted["_id"]] = converted
    file = output / "original.json"
    try:
        output.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps([*by_id.values()], ensure_ascii=False), encoding="utf-8")
    except OSError as error:
        raise UserError(f"{output}: cannot be written ({error.strerror})") from None
    build_verified.main(
        [
            *("--benchmark", CONFIG, "--input", str(file), "--split", "validation"),
            *("--teacher", "annotations", "--output", str(output)),
        ]
    )


def convert_row(place: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a row to the format of 2WikiMultihopQA; raise ``UserError`` that names ``place`` for a bad row.

    A question is compositional if one fact's tail is another's head, else it is a comparison.
    """
    try:
        boundary.read(Row, row, "row")
    except ValueError as error:
        raise UserError(f"{place}: {error}") from None
    facts, pages = row["facts"], row["pages"]
    heads, tails = {head for head, _, _ in facts}, {tail for _, _, tail in facts}
    return {
        "_id": row["id"],
        "type": "compositional" if heads & tails else "comparison",
        "question": row["question"],
        "answer": row["answer"],
        "context": [[title, sentences] for title, sentences in pages.items()],
        # All sentences of the pages on the facts' heads.
        "supporting_facts": [
            [title, number]
            for title, sentences in pages.items()
            if title in heads
            for number, _ in enumerate(sentences)
        ],
        "evidences": facts,
    }


def labels(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the id, label and reason of each row, read with `load_dataset`."""
    from datasets import load_dataset

    rows = load_dataset(str(folder), f"{CONFIG}_labeled", split="validation")
    names = rows.features["noise_type"]
    for row in rows:
        yield row["id"], names.int2str(row["noise_type"]), row["explanation"]


if __name__ == "__main__":
    run(main)
