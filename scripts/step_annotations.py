"""Questions of step rows with the annotations that their verified set holds.

Step rows show what a verifier may see. A verifier without a model, which reasons over annotations,
needs the question as `build_verified` wrote it, with the passages in the order of the steps' rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evaluators.verifier.step_set import StepCase
from safe_stepwise.errors import UserError
from safe_stepwise.records import Question
from safe_stepwise.store.codec import question_of
from safe_stepwise.store.layout import dataset_folder, parquet_files
from safe_stepwise.store.names import LABELED, VERIFIED


def with_annotations(cases: Sequence[StepCase], folder: Path) -> list[StepCase]:
    """The same rows, their questions with answers and annotations.

    Raises ``UserError`` for a folder that is no verified set, or not the one that the steps were
    made of.
    """
    asked = {(c.question.benchmark, c.question.id): c.question for c in cases}
    known: dict[tuple[str, str], dict[str, Any]] = {}
    for benchmark in dict.fromkeys(benchmark for benchmark, _ in asked):
        ids = [id_ for name, id_ in asked if name == benchmark]
        for row in _rows(folder, benchmark, ids):
            known.setdefault((benchmark, row["id"]), row)  # as the steps were made: train's first
    found: dict[tuple[str, str], Question] = {}
    for key, question in asked.items():
        if key not in known:
            raise UserError(
                f"{folder}: holds no {key[0]} question {key[1]!r}; give as --verified the folder "
                "that the steps were made of"
            )
        found[key] = _annotated(question, known[key], folder)
    return [replace(c, question=found[c.question.benchmark, c.question.id]) for c in cases]


def _annotated(question: Question, row: Mapping[str, Any], folder: Path) -> Question:
    """The verified question with the passages that a step row shows, numbered as there."""
    whole = question_of(row, benchmark=question.benchmark, split="")
    left = {(p.title, p.text): n for n, p in reversed([*enumerate(whole.passages, 1)])}
    shown = [(p.title, p.text) for p in question.passages]
    if not set(shown) <= set(left) or whole.question != question.question:
        raise UserError(
            f"{folder}: its question {question.id!r} has other text or passages than the steps; "
            "give as --verified the folder that the steps were made of"
        )
    places = {left[passage]: n for n, passage in enumerate(shown, 1)}
    return replace(
        whole,
        passages=tuple(whole.passages[left[passage] - 1] for passage in shown),
        decomposition=tuple(
            replace(hop, passage=None if hop.passage is None else places.get(hop.passage))
            for hop in whole.decomposition
        ),
    )


def _rows(folder: Path, benchmark: str, ids: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The rows of these ids, whatever the split, train before validation."""
    dataset = dataset_folder(folder, VERIFIED)
    files = parquet_files(dataset, benchmark + LABELED) if dataset else []
    if not files:
        raise UserError(
            f"{folder}: no {benchmark} rows of {VERIFIED} in it; give the --output of "
            "build_verified or regenerate"
        )
    wanted = pa.array(ids, pa.string())
    for file in files:
        with pq.ParquetFile(file) as content:
            for batch in content.iter_batches(batch_size=1_000):
                yield from batch.filter(pc.is_in(batch.column("id"), value_set=wanted)).to_pylist()
