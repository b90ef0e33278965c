"""Score noise labels against published ones, and list the rows on which the two differ.

python -m scripts.compare_labels                          # the real data beside the checkout
python -m scripts.compare_labels --verified build/musique --published labels.jsonl
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from builders.benchmarks import BENCHMARKS
from builders.verified.lookup import Labelled, labelled, verified_rows
from builders.verified.verification import doubted
from evaluators.labels.published import (
    CALIBRATION,
    HEADER,
    calibration,
    comparison,
    disagreements,
    halves,
    kept_back,
    listed,
    write_disagreements,
)
from safe_stepwise.errors import UserError
from safe_stepwise.store.published import read_published
from safe_stepwise.store.tables import table
from scripts.cli import FILE, FOLDER, Parser, command, run, share, warn

ROOT = Path(__file__).parents[1]
REAL_DATA = Path(os.environ.get("SAFE_STEPWISE_REAL_DATA") or ROOT.parent / "shared" / "data")
SPLITS = {"train": "train", "dev": "validation"}


def main(arguments: Sequence[str]) -> None:
    """Print the table and the disagreements; raises ``UserError`` for what the user can mend."""
    options = _parser().parse_args(arguments)
    if (options.verified is None) != (options.published is None):
        raise UserError("--verified and --published go together: give both, or neither")
    if options.verified:
        published = read_published(options.published)
        rows = {name: _once(found) for name, found in labelled(options.verified)}
    else:
        published, rows = real_rows(options.data)
    rows = _sure(rows, options.min_confidence)
    if options.halves:
        rows = halves(rows)
    print(table([HEADER, *comparison(rows, published)]))
    print("\nHow sure the labels are, and the share of them that the published ones confirm:\n")
    print(table([CALIBRATION, *calibration(rows, published)]))
    differ = disagreements(rows, published)
    if options.halves:
        differ = [row for row in differ if not kept_back(row[0].id)]
    print(listed(differ, options.show))
    if options.disagreements:
        write_disagreements(differ, options.disagreements)
        print(f"\n{len(differ)} disagreements in {options.disagreements}")


def real_rows(data: Path) -> tuple[dict[str, bool], dict[str, list[Labelled]]]:
    """Published labels and our own for the benchmarks' rows in a data folder."""
    published: dict[str, bool] = {}
    rows: dict[str, list[Labelled]] = {}
    for name in BENCHMARKS:
        labels = data / f"{name}_published_labels.jsonl"
        if labels.exists():
            published |= read_published(labels)
            files = ((data / f"{name}_{part}.jsonl", split) for part, split in SPLITS.items())
            rows[name] = _once(
                row for f, split in files if f.exists() for row in verified_rows(name, f, split)
            )
    if not rows:
        lacking = "no *_published_labels.jsonl there" if data.is_dir() else "no such folder"
        raise UserError(
            f"{data}: {lacking}; name the folder with --data, or score a build with --verified DIR"
            " --published FILE"
        )
    return published, rows


def _once(rows: Iterable[Labelled]) -> list[Labelled]:
    """Rows without those whose id came before: a question may be in both splits."""
    first: dict[str, Labelled] = {}
    for question, label in rows:
        first.setdefault(question.id, (question, label))
    return list(first.values())


def _sure(rows: Mapping[str, list[Labelled]], least: float) -> dict[str, list[Labelled]]:
    """The rows with their labels, but those of noise that are less sure than ``least``."""
    unsaid = [label for found in rows.values() for _, label in found if label.confidence is None]
    if least and (noise := sum(label.unverifiable for label in unsaid)):
        warn(f"{noise} labels of noise say no confidence: --min-confidence leaves them as they are")
    return {
        name: [(q, doubted(label, least)) for q, label in found] for name, found in rows.items()
    }


def _parser() -> Parser:
    parser = command(
        "compare_labels", "Score noise labels against published ones and list the disagreements."
    )
    add = parser.add_argument
    add("--data", **FOLDER, default=REAL_DATA, help="real rows and their labels")
    add("--verified", **FOLDER, help="an output of build_verified, to score")
    add("--published", **FILE, help="JSONL labels to score it against")
    sure = "count no noise of which a label is less sure than X, 0 to 1 (0: count all)"
    add("--min-confidence", type=share, default=0.0, metavar="X", help=sure)
    add(
        "--halves",
        action="store_true",
        help="score two halves apart and list the disagreements of one only, the other being kept"
        " back from whoever mends the checks",
    )
    add("--show", type=int, default=5, metavar="N", help="disagreements to print a side (5)")
    add("--disagreements", **FILE, help="write all of them here, as JSONL")
    return parser


if __name__ == "__main__":
    run(main)
