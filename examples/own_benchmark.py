"""Verify a benchmark of your own: which of its questions its own passages can answer.

    python -m examples.own_benchmark --input examples/own_benchmark.jsonl --output build/own

Rows of any shape do, once one function (`original` below) says them in the shape of a benchmark
that is read already. Here that is 2WikiMultihopQA's: facts as triples, and passages that are known
by their titles. Each question keeps its row and gets a label, a reason and the path of evidence; no
model is asked. The five rows of the example are made up, and two of them deserve no trust.

For a benchmark that you mean to keep, write one file like builders/benchmarks/twowiki.py instead.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safe_stepwise.commands.reading import rows_of
from safe_stepwise.errors import UserError
from safe_stepwise.store import boundary
from safe_stepwise.store.tables import text_table
from scripts import build_verified
from scripts.cli import run

ROWS = Path(__file__).with_name("own_benchmark.jsonl")
CONFIG = "2wikimultihopqa"
"""In whose shape the rows are read, and so what their config is called."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of ours."""

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
    print(f"\n{text_table(table)}")


def build(rows: Path, output: Path) -> None:
    """Verify the rows of a file of ours into a folder."""
    by_id: dict[str, dict[str, Any]] = {}
    for place, row in rows_of(rows):
        converted = original(place, row)
        if converted["_id"] in by_id:
            raise UserError(f"{place}: the id {converted['_id']} stands in a row before")
        by_id[converted["_id"]] = converted
    raw = output / "original.json"
    try:
        output.mkdir(parents=True, exist_ok=True)
        raw.write_text(json.dumps([*by_id.values()], ensure_ascii=False), encoding="utf-8")
    except OSError as error:
        raise UserError(f"{output}: cannot be written ({error.strerror})") from None
    build_verified.main(
        [
            *("--benchmark", CONFIG, "--input", str(raw), "--split", "validation"),
            *("--teacher", "annotations", "--output", str(output)),
        ]
    )


def original(place: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of ours as 2WikiMultihopQA would have it; ``UserError`` for one of another form.

    A question whose facts are a chain is compositional, one with facts side by side a comparison.
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
        # What is needed: here the page of each fact's head, its first sentence and all others.
        "supporting_facts": [
            [title, number]
            for title, sentences in pages.items()
            if title in heads
            for number, _ in enumerate(sentences)
        ],
        "evidences": facts,
    }


def labels(folder: Path) -> Iterator[tuple[str, str, str]]:
    """The id of each row, its label and the reason, as anyone opens them."""
    from datasets import load_dataset

    rows = load_dataset(str(folder), f"{CONFIG}_labeled", split="validation")
    names = rows.features["noise_type"]
    for row in rows:
        yield row["id"], names.int2str(row["noise_type"]), row["explanation"]


if __name__ == "__main__":
    run(main)
