"""Verdicts on paths as a page to read, the paper's figures beside."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluators.paths.quality import PAPER
from safe_stepwise.methods.paths import WAYS
from safe_stepwise.store import published_tables
from safe_stepwise.store.agreement import title_of
from safe_stepwise.store.pages import fill
from safe_stepwise.store.tables import percent, shown, table

SHOWN = {"balanced": "balanced", "paper_mean": "the paper's mean", "accuracy": "accuracy"}
"""Measures in the first table, with their titles."""


def page(found: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    limits = sorted({run["max_tokens"] for run in found["runs"]})
    own = {"titles": SHOWN, "limits": limits, "ways": WAYS, "published": published()}
    return fill(Path(__file__).parent / "templates", "paths.md.jinja", **found, **own)


def summary(found: Mapping[str, Any]) -> str:
    """The results in short."""
    header = ("engine", "prompt", *SHOWN.values(), "unreadable", "failed")
    rows = [
        (
            *(title_of(run), run["prompt"]),
            *(shown(run["measures"][name], percent) for name in SHOWN),
            *(run["said"]["unreadable"], run["said"]["failed"]),
        )
        for run in found["runs"]
    ]
    first = found["runs"][0]
    return f"{table([header, *rows])}\n\n{first['rows']:,} rows of {first['questions']:,} questions"


def published() -> dict[str, dict[str, str]]:
    """By model and prompt Table 2's figure, and what Table 6 gives once the classes weigh alike."""
    by_model: dict[str, dict[str, str]] = {}
    for row in published_tables.published().path_judgements:
        wrong = [row.kinds[kind] for kind in PAPER if kind != "valid"]
        balanced = (row.kinds["valid"] + sum(wrong) / len(wrong)) / 2
        by_model.setdefault(row.model, {})[row.way] = f"{row.mean:.2f} ({balanced:.2f})"
    return by_model
