"""Step rows written down as the published set holds them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from builders.steps.configs import config_features
from builders.work.parquet import SplitWriter
from safe_stepwise.store.names import CONTEXTS, ORIGINAL, ORIGINS, SEEN, STEPS, WORDINGS
from safe_stepwise.taxonomy import category, labels


def step(number: int, text: str, kind: str = "Attribution") -> str:
    return f"Step {number}: {text} ({kind})"


def row(
    id_: str,
    steps: Sequence[str],
    gold: str = "Correct",
    origin: str = "ideal",
    question: str = "q1",
    benchmark: str = "synthetic",
    wording: str = SEEN,
    context: str = ORIGINAL,
) -> dict[str, Any]:
    return {
        "id": id_,
        "benchmark": benchmark,
        "question_id": question,
        "question": f"What is asked by {question}?",
        "passages": [{"title": "Oru", "text": "Oru lies on the Vel. It is old."}],
        "previous_steps": list(steps[:-1]),
        "current_step": steps[-1],
        "step_kind": "Attribution",
        "error_type": labels().index(gold),
        "error_category": ("Procedural", "Attribution", "Logical", "Final Answer", "Correct").index(category(gold)),
        "diagnosis": "So it is.",
        "guidance": "Go on.",
        "query": None,
        "origin": ORIGINS.index(origin),
        "position": len(steps),
        "teacher": "hand",
        "wording": WORDINGS.index(wording),
        "context": CONTEXTS.index(context),
    }


def write_set(folder: Path, **splits: Sequence[dict[str, Any]]) -> Path:
    """A folder with these rows by split."""
    columns = config_features(STEPS)
    (folder / "data" / "steps").mkdir(parents=True)
    for split, rows in splits.items():
        writer = SplitWriter(folder / "data" / "steps", split, columns)
        if rows:
            writer.add(pa.Table.from_pylist(list(rows), schema=columns.arrow_schema))
        writer.close()
    return folder
