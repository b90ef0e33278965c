"""Reads the numbers that the papers print (``published_tables.yaml``), which our reports show beside our own.

Reports mark these numbers *published* and never test our results against them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from safe_stepwise.store.boundary import read
from safe_stepwise.store.packaged import read_yaml

Paper = Literal["v1", "v2", "sg_fsm"]
BENCHMARKS = ("2wikimultihopqa", "hotpotqa", "musique")
AVERAGE = "average"
"""The name of the average over a row's benchmarks."""
EVERY = "all"
"""The generator of a row that is the mean of a table's generators."""
PAPERS: Mapping[Paper, str] = {"v1": "SAFE v1", "v2": "SAFE v2", "sg_fsm": "SG-FSM"}
"""The papers' names in tables."""
MAIN: Mapping[Paper, str] = {"v1": "3", "v2": "2", "sg_fsm": "2"}
"""The table of each paper's main results."""


@dataclass(frozen=True, slots=True)
class PublishedScore:
    """One row of a table of scores, in percent."""

    paper: Paper
    table: str
    generator: str
    method: str
    """The method's name in this project (``safe``, ``no_verification``)."""
    variant: str
    """The row's setting in an ablation; empty in tables of methods."""
    scores: Mapping[str, Mapping[str, float]]
    """The printed scores among ``em``, ``f1`` and ``acc``, by benchmark and for `AVERAGE`."""
    delta: Mapping[str, float]
    """The printed differences in points, by benchmark and for `AVERAGE`."""


Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Published:
    """The content of the file, each table in the printed order; shares are in percent.

    The keys of a row are the columns that the file prints; ``misprint`` says why a printed figure can't be right.
    """

    scores: tuple[PublishedScore, ...]
    noise_ratios: tuple[Row, ...]
    """The share of each split that is unverifiable: SAFE v1, Table 2 and v2, Table 1, which are identical."""
    tokens: tuple[Row, ...]
    """Prompt tokens over 3,000 questions: SAFE v1, Table 8 and v2, Table 13, which are identical."""
    failures: tuple[Row, ...]
    """The numbers in the text on SAFE v1, Figures 3 and 4, and v2, Figures 9 and 10."""
    path_judgements: tuple[Row, ...]
    """The discriminative evaluation of arXiv 2402.11199, Tables 2 and 6; prompts have our names."""
    reasoning_scores: tuple[Row, ...]
    """The generative evaluation of arXiv 2402.11199, Tables 3 and 7: F1, recall and edits to the gold path."""
    reasoning_detection: tuple[Row, ...]
    """How well the rule of arXiv 2402.11199 finds chains that two experts call faithful or unfaithful (Table 4)."""
    answers: tuple[Row, ...]
    """Hit, Hits@1 and F1 over knowledge graphs by benchmark (arXiv 2505.15210, Tables 2, 3, 7); None: not printed.

    A note to Table 2 says that some of MetaQA's figures are only of 3-hop questions, but not which figures.
    """
    answer_costs: tuple[Row, ...]
    """Calls and tokens per question (arXiv 2505.15210, Table 5), without the calls that propose paths."""
    answer_priors: tuple[Row, ...]
    """Hit and F1 of path generation and constraint extraction by benchmark (arXiv 2505.15210, Table 4)."""


@cache
def published() -> Published:
    """Read the papers' numbers.

    >>> [s.delta for s in published().scores if s.generator == EVERY and s.table == MAIN[s.paper] and s.delta]
    [{'average': 8.4}, {'average': 8.8}]
    """
    content = read_yaml(resources.files("safe_stepwise").joinpath("store", "published_tables.yaml"))
    scores = [_score_row(table, row) for table in content["scores"] for row in table["rows"]]
    return read(Published, {**content, "scores": scores}, "the papers' tables")


def _score_row(table: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    scores = {
        name: {metric: value for metric, value in zip(table["metrics"], row[name], strict=True) if value is not None}
        for name in (*BENCHMARKS, AVERAGE)
        if name in row
    }
    names = {name: row.get(name, "") for name in ("generator", "method", "variant")}
    return {**table, **names, "scores": scores, "delta": row.get("delta", {})}
