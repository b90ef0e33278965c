"""The numbers that the papers print, which our reports show beside our own (``published_tables.yaml``).

Reports mark them *published* and never test them against our results.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

import yaml

from safe_stepwise.store.boundary import read

Paper = Literal["v1", "v2", "sg_fsm"]
Role = Literal["generator", "verifier", "overall"]
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
    """The printed ones of ``em``, ``f1`` and ``acc``, by benchmark and for `AVERAGE`."""
    delta: Mapping[str, float]
    """The printed differences in points, by benchmark and for `AVERAGE`."""


@dataclass(frozen=True, slots=True)
class PublishedNoise:
    """The share of a benchmark's split that a paper calls unverifiable."""

    paper: Paper
    table: str
    benchmark: str
    split: str
    questions: int
    """The printed number, in three of six cases less than the full split has."""
    noisy: int
    ratio_percent: float


@dataclass(frozen=True, slots=True)
class PublishedTokens:
    """Prompt tokens of SAFE over 3,000 questions, in millions."""

    paper: Paper
    table: str
    role: Role
    total_millions: float
    cached_millions: float
    computed_millions: float
    cached_percent: float


@dataclass(frozen=True, slots=True)
class PublishedFailures:
    """The share of all detected errors that are of a category or in the first steps."""

    paper: Paper
    figure: str
    percent: float
    category: str = ""
    first_steps: int = 0


@dataclass(frozen=True, slots=True)
class PublishedPaths:
    """A model's accuracy on relation paths of CWQ (arXiv 2402.11199, Tables 2 and 6); percent."""

    model: str
    prompt: str
    """The prompt's name in this project."""
    mean: float
    """The printed mean over the kinds."""
    kinds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class PublishedReasoning:
    """A model's answers and chains of thought (arXiv 2402.11199, Tables 3 and 7); percent."""

    benchmark: str
    prompt: str
    model: str
    answer: float
    """F1 of the answers."""
    reasoning: float
    """F1 of the reasoning."""
    gap: float
    edits: float
    """Edits to the gold path, normalised."""
    answer_recall: float
    reasoning_recall: float
    misprint: str = ""


@dataclass(frozen=True, slots=True)
class PublishedDetection:
    """How well that paper's rule finds what two experts call faithful or unfaithful (Table 4); percent."""

    verdict: str
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class PublishedAnswers:
    """A method's answers over knowledge graphs (arXiv 2505.15210, Tables 2, 3, 7); percent.

    Each benchmark has the hit, Hits@1 and F1, None if nothing is printed. A note to Table 2 says that some of
    MetaQA's figures are of 3-hop questions alone; our text of the paper does not say which.
    """

    table: str
    method: str
    model: str
    webqsp: Sequence[float | None] = ()
    cwq: Sequence[float | None] = ()
    metaqa: Sequence[float | None] = ()
    misprint: str = ""
    """Why a printed figure can't be right; empty if it can."""


@dataclass(frozen=True, slots=True)
class PublishedCost:
    """Calls and tokens per question (arXiv 2505.15210, Table 5), without the calls that propose paths."""

    benchmark: str
    method: str
    calls: float
    prompt: float
    completion: float
    total: float
    """The printed total."""
    misprint: str = ""


@dataclass(frozen=True, slots=True)
class Published:
    """The content of the file, each table in the printed order."""

    scores: tuple[PublishedScore, ...]
    noise_ratios: tuple[PublishedNoise, ...]
    """SAFE v1, Table 2 and v2, Table 1, which are identical."""
    tokens: tuple[PublishedTokens, ...]
    """SAFE v1, Table 8 and v2, Table 13, which are identical."""
    failures: tuple[PublishedFailures, ...]
    """The numbers in the text on SAFE v1, Figures 3 and 4, and v2, Figures 9 and 10."""
    path_judgements: tuple[PublishedPaths, ...]
    """The discriminative evaluation of arXiv 2402.11199, Tables 2 and 6."""
    reasoning_scores: tuple[PublishedReasoning, ...]
    """Its generative evaluation, Tables 3 and 7."""
    reasoning_detection: tuple[PublishedDetection, ...]
    answers: tuple[PublishedAnswers, ...]
    answer_costs: tuple[PublishedCost, ...]


@cache
def published() -> Published:
    """Read the papers' numbers.

    >>> [s.delta for s in published().scores if s.generator == EVERY and s.table == MAIN[s.paper] and s.delta]
    [{'average': 8.4}, {'average': 8.8}]
    """
    content = yaml.safe_load(resources.files("safe_stepwise").joinpath("store", "published_tables.yaml").read_bytes())
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
