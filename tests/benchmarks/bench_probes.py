"""The probes of a verifier set beside exact logistic regressions: figures and processor time.

python -m tests.benchmarks.bench_probes build/steps/safe-verifier-steps              # ours alone
python -m tests.benchmarks.bench_probes build/steps/safe-verifier-steps --exact      # and lbfgs

A probe that is weaker than the exact one (by more than 0.01) would flatter the set.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from builders.steps import probes
from builders.steps.rows import StepRow
from safe_stepwise.records import Feedback, Question
from safe_stepwise.steps import parse_step
from safe_stepwise.store.names import ORIGINS, STEPS
from safe_stepwise.store.parquet import parquet_files
from safe_stepwise.store.tables import text_table
from safe_stepwise.taxonomy import labels
from scripts.cli import run
from tests.benchmarks.command_line import Parser

Predict = Callable[[Sequence[str], Sequence[str], Sequence[str], bool], list[str]]


def read(folder: Path) -> list[StepRow]:
    """The rows of both splits, as far as probes look at them."""
    columns = "benchmark question_id question previous_steps current_step error_type origin".split()
    files = parquet_files(folder, STEPS)
    return [row_of(r) for file in files for r in pq.read_table(file, columns=columns).to_pylist()]


def row_of(row: dict[str, Any]) -> StepRow:
    question = Question(row["question_id"], row["benchmark"], "", row["question"], "")
    previous = tuple(map(parse_step, row["previous_steps"]))
    said = Feedback(labels()[row["error_type"]], "", "")
    step = parse_step(row["current_step"])
    return StepRow(question, previous, step, said, ORIGINS[row["origin"]], "")


def exact(texts: Sequence[str], gold: Sequence[str], groups: Sequence[str], balanced: bool) -> list[str]:
    """As `probes.cross_predict`, by multinomial logistic regression fitted with lbfgs."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 3), min_df=2, sublinear_tf=True),
        LogisticRegression(max_iter=300, C=10, class_weight="balanced" if balanced else None),
    )
    folds = GroupKFold(probes.FOLDS, shuffle=True, random_state=0)
    return [*map(str, cross_val_predict(model, texts, gold, groups=groups, cv=folds))]


def timed(rows: Sequence[StepRow], predict: Predict) -> tuple[Sequence[probes.ProbeResult], float]:
    """The probes by one way of fitting, and the seconds of processor time that they took."""
    ours, probes.cross_predict = probes.cross_predict, predict
    try:
        started = time.process_time()
        return probes.run_probes(rows), time.process_time() - started
    finally:
        probes.cross_predict = ours


def main(arguments: Sequence[str]) -> None:
    warnings.filterwarnings("ignore")
    form = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog="bench_probes", description=__doc__, formatter_class=form)
    parser.add_argument("folder", type=Path, help="a safe-verifier-steps")
    parser.add_argument("--exact", action="store_true", help="beside them lbfgs (minutes)")
    options = parser.parse_args(arguments)
    rows = read(options.folder)
    ways: dict[str, Predict] = {"ours": probes.cross_predict}
    if options.exact:
        ways["exact"] = exact
    lines = []
    for name, predict in ways.items():
        found, seconds = timed(rows, predict)
        lines += [(name, p.name, p.rows, f"{p.majority}", f"{p.score}", "") for p in found]
        lines.append((name, "all", len(rows), "", "", f"{seconds:.1f}"))
        print(text_table([("fit", "probe", "rows", "majority", "score", "CPU s"), *lines]), flush=True)
        print()


if __name__ == "__main__":
    run(main)
