"""Precision and recall of the graph-based checker on errors worded as it has not seen them.

python -m scripts.measure_checker --verified build/verified
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from builders.steps.injection import Wordings, meant_and_found, wordings
from builders.steps.trajectories import TrajectoryError, checked
from evaluators.labels.agreement import Score
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.plans import PlanError
from safe_stepwise.checking.wordings import choice_for
from safe_stepwise.checking.writing import write_trajectory
from safe_stepwise.errors import UserError
from safe_stepwise.store.codec import label_of, question_of
from safe_stepwise.store.layout import dataset_folder, labeled_files
from safe_stepwise.store.names import VERIFIED
from safe_stepwise.taxonomy import CORRECT, ERROR_TYPES
from scripts.cli import Parser, run, table

UNSEEN = Path(__file__).parents[1] / "tests" / "builders" / "steps" / "unseen_injections.yaml"
SHARE = 3
"""One question in so many is measured on."""


def main(arguments: Sequence[str]) -> None:
    """Print the table; raises ``UserError`` for what the user can mend."""
    parser = Parser(
        prog="python -m scripts.measure_checker",
        description="Score the graph-based checker on injected errors it was not developed on.",
        epilog="Errors are put into the ideal trajectories of every third question, at every "
        "position, and none is left out for what the checker says of it. 'abstains' counts errors "
        "of the type of which it says nothing.",
    )
    add = parser.add_argument
    add("--verified", type=Path, required=True, metavar="DIR", help="an --output of build_verified")
    add("--wordings", type=Path, default=UNSEEN, metavar="FILE", help="how errors are worded")
    add("--seed", type=int, default=1, metavar="N", help="of the errors (default 1)")
    options = parser.parse_args(arguments)
    for benchmark, pairs, ideal in measured(options):
        print(table([(benchmark, "errors", "precision", "recall", "abstains"), *scores(pairs)]))
        false = sum(count for found, count in ideal.items() if found not in (CORRECT, None))
        print(f"ideal steps: {sum(ideal.values()):,}, called wrong: {false}\n")


def measured(
    options: argparse.Namespace,
) -> Iterator[tuple[str, Counter[tuple[str, str | None]], Counter[str | None]]]:
    """For each benchmark: pairs (meant, found), and what was found in unchecked ideal steps."""
    words = read_wordings(options.wordings)
    dataset = dataset_folder(options.verified, VERIFIED)
    if dataset is None or not (files := labeled_files(dataset)):
        raise UserError(f"{options.verified}: holds no {VERIFIED}; give the --output of a build")
    for benchmark, paths in files.items():
        pairs: Counter[tuple[str, str | None]] = Counter()
        ideal: Counter[str | None] = Counter()
        for row in _rows(paths):
            question = question_of(row, benchmark=benchmark, split="")
            if choice_for("held back", question.id) % SHARE:
                continue
            try:
                label = label_of(row)
                checker = Checker(question, label.reasoning_path, label.knowledge_graph)
            except PlanError:
                continue
            steps = write_trajectory(checker, options.seed)
            for number, step in enumerate(steps):
                verdict = checker.check(steps[:number], step)
                ideal[None if verdict is None else verdict.error_type] += 1
                if verdict is None or verdict.error_type != CORRECT:
                    break  # what follows would build on a step that was not passed
            try:
                checked(checker, steps)
            except TrajectoryError:
                continue
            pairs.update(meant_and_found(checker, steps, options.seed, words))
        yield benchmark, pairs, ideal


def read_wordings(file: Path) -> Wordings:
    """Wordings of errors; ``UserError`` for a file that can't be read or lacks one of ours."""
    try:
        words = yaml.safe_load(file.read_text(encoding="utf-8"))
        lacking = [f"{t}/{w}" for t, ways in wordings().items() for w in ways if not words[t][w]]
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        lacking = [str(error)]
    if lacking:
        raise UserError(
            f"{file}: no wordings in the form of builders/injections.yaml ({lacking[0]})"
        )
    found: Wordings = words
    return found


def scores(pairs: Counter[tuple[str, str | None]]) -> list[tuple[object, ...]]:
    """Rows of the table: each error type, then all of them."""
    rows: list[tuple[object, ...]] = []
    for entry in ERROR_TYPES:
        meant = sum(n for (one, _), n in pairs.items() if one == entry.name)
        found = sum(n for (_, one), n in pairs.items() if one == entry.name)
        rows.append(_row(Score(entry.name, pairs[entry.name, entry.name], meant, found), pairs))
    both = sum(n for (meant_, found_), n in pairs.items() if meant_ == found_)
    told = sum(n for (_, one), n in pairs.items() if one not in (None, CORRECT))
    return [*rows, _row(Score("all", both, sum(pairs.values()), told), pairs)]


def _row(score: Score, pairs: Counter[tuple[str, str | None]]) -> tuple[object, ...]:
    silent = sum(n for (m, f), n in pairs.items() if f is None and score.name in (m, "all"))
    return (score.name, score.true, f"{score.precision:.3f}", f"{score.recall:.3f}", silent)


def _rows(files: Sequence[Path]) -> Iterator[dict[str, Any]]:
    for file in files:
        for row in pq.read_table(file).to_pylist():
            if row["noise_type"] == 0:
                yield row


if __name__ == "__main__":
    run(main)
