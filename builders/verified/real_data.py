"""Real rows of the benchmarks with published labels, in a folder beside the checkout.

``$SAFE_STEPWISE_REAL_DATA`` names another folder. Nothing is ever labelled by what is published.
"""

import os
from pathlib import Path

from builders.benchmarks import BENCHMARKS
from builders.verified.lookup import Labelled, once, verified_rows
from safe_stepwise.errors import UserError
from safe_stepwise.store.agreement import read_published

ROOT = Path(__file__).parents[2]
REAL_DATA = Path(os.environ.get("SAFE_STEPWISE_REAL_DATA") or ROOT.parent / "shared" / "data")
SPLITS = {"train": "train", "dev": "validation"}
"""The splits, by what their files are called."""


def real_rows(data: Path) -> tuple[dict[str, bool], dict[str, list[Labelled]]]:
    """Published labels by id, and our own of the benchmarks' rows in a data folder.

    Raises ``UserError`` where there are none.
    """
    published: dict[str, bool] = {}
    rows: dict[str, list[Labelled]] = {}
    for name in BENCHMARKS:
        labels = data / f"{name}_published_labels.jsonl"
        if labels.exists():
            published |= read_published(labels)
            files = ((data / f"{name}_{part}.jsonl", split) for part, split in SPLITS.items())
            rows[name] = once(row for f, split in files if f.exists() for row in verified_rows(name, f, split))
    if not rows:
        lacking = "no *_published_labels.jsonl there" if data.is_dir() else "no such folder"
        raise UserError(
            f"{data}: {lacking}; name the folder with --data, or score a build with --verified DIR --published FILE"
        )
    return published, rows
