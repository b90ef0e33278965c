"""The numbers that the papers print, to stand beside our own (``published_tables.yaml``).

They are others' reports: shown, marked *published*, and never tested against anything of ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal, TypeVar

import yaml

from safe_stepwise.store.shapes import shaped

Paper = Literal["v1", "v2", "sg_fsm"]
Role = Literal["generator", "verifier", "overall"]
BENCHMARKS = ("2wikimultihopqa", "hotpotqa", "musique")
AVERAGE = "average"
"""Of a row's benchmarks."""
EVERY = "all"
"""The generator of a row that is the mean of a table's generators."""
PAPERS: Mapping[Paper, str] = {"v1": "SAFE v1", "v2": "SAFE v2", "sg_fsm": "SG-FSM"}
"""Their names in tables."""
MAIN: Mapping[Paper, str] = {"v1": "3", "v2": "2", "sg_fsm": "2"}
"""The table of each paper's main results."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PublishedScore:
    """One row of a table of scores; percentages."""

    paper: Paper
    table: str
    generator: str
    method: str
    """By the name that the method has here: ``safe``, ``no_verification``; also ``trace``."""
    variant: str
    """What sets the row apart in an ablation; empty in tables of methods."""
    scores: Mapping[str, Mapping[str, float]]
    """``em``, ``f1`` and ``acc`` as far as printed, by benchmark and for `AVERAGE`."""
    delta: Mapping[str, float]
    """Differences as printed, in points, by benchmark and for `AVERAGE`."""


@dataclass(frozen=True, slots=True)
class PublishedNoise:
    """How much of a benchmark's split was found unverifiable."""

    paper: Paper
    table: str
    benchmark: str
    split: str
    questions: int
    """As printed: fewer than the full split has in three of six."""
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
    """A share of all errors that were found: of a category, or within the first steps."""

    paper: Paper
    figure: str
    percent: float
    category: str = ""
    first_steps: int = 0


@dataclass(frozen=True, slots=True)
class PublishedPaths:
    """A model's accuracy on relation paths of CWQ (arXiv 2402.11199, Tables 2 and 6); percent."""

    model: str
    way: str
    """The prompt, by its name here."""
    mean: float
    """Over the kinds, as printed."""
    kinds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class PublishedAnswers:
    """A method's answers over knowledge graphs (arXiv 2505.15210, Tables 2, 3, 7); percent.

    By benchmark the hit, Hits@1 and F1, None where nothing is printed. Which of MetaQA's
    figures are of 3-hop questions alone, as a note to Table 2 has it, our text of it does not tell.
    """

    table: str
    method: str
    model: str
    webqsp: Sequence[float | None] = ()
    cwq: Sequence[float | None] = ()
    metaqa: Sequence[float | None] = ()
    misprint: str = ""
    """Why a figure can't be right, where one can't."""


@dataclass(frozen=True, slots=True)
class PublishedCost:
    """Calls and tokens a question (arXiv 2505.15210, Table 5), without those that propose paths."""

    benchmark: str
    method: str
    calls: float
    prompt: float
    completion: float
    total: float
    """As printed."""
    misprint: str = ""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Where a paper's numbers disagree with each other."""

    paper: Paper
    tables: tuple[str, ...]
    what: str


@cache
def scores() -> tuple[PublishedScore, ...]:
    """All rows of all tables of scores, in the order of print.

    >>> [s.delta for s in scores() if s.generator == EVERY and s.table == MAIN[s.paper] and s.delta]
    [{'average': 8.4}, {'average': 8.8}]
    """
    return tuple(_score(table, row) for table in _content()["scores"] for row in table["rows"])


@cache
def noise_ratios() -> tuple[PublishedNoise, ...]:
    """SAFE v1, Table 2 and v2, Table 1, which print the same.

    >>> [(n.questions, n.ratio_percent) for n in noise_ratios() if n.benchmark == "musique"][:2]
    [(19902, 10.8), (2412, 14.18)]
    """
    return tuple(_made(PublishedNoise, row) for row in _content()["noise_ratios"])


@cache
def tokens() -> tuple[PublishedTokens, ...]:
    """SAFE v1, Table 8 and v2, Table 13, which print the same."""
    return tuple(_made(PublishedTokens, row) for row in _content()["tokens"])


@cache
def failures() -> tuple[PublishedFailures, ...]:
    """What is printed in words of SAFE v1, Figures 3 and 4, and v2, Figures 9 and 10."""
    return tuple(_made(PublishedFailures, row) for row in _content()["failures"])


@cache
def path_judgements() -> tuple[PublishedPaths, ...]:
    """The discriminative evaluation of arXiv 2402.11199, Tables 2 and 6.

    >>> path_judgements()[0].kinds["valid"]
    79.01
    """
    return tuple(_made(PublishedPaths, row) for row in _content()["path_judgements"])


@cache
def answers() -> tuple[PublishedAnswers, ...]:
    """Answers over knowledge graphs, as arXiv 2505.15210 prints them.

    >>> [row.model for row in answers() if row.misprint]
    ['Qwen3-8B']
    """
    return tuple(_made(PublishedAnswers, row) for row in _content()["answers"])


@cache
def answer_costs() -> tuple[PublishedCost, ...]:
    """What they cost, likewise.

    >>> [row.calls for row in answer_costs() if row.method == "DP"]
    [2.9, 2.5]
    """
    return tuple(_made(PublishedCost, row) for row in _content()["answer_costs"])


@cache
def contradictions() -> tuple[Contradiction, ...]:
    """Where a paper contradicts itself; what is printed stands in the tables."""
    found = _content()["contradictions"]
    return tuple(_made(Contradiction, {**row, "tables": tuple(row["tables"])}) for row in found)


@cache
def _content() -> Mapping[str, Any]:
    file = resources.files("safe_stepwise").joinpath("store", "published_tables.yaml")
    content: Mapping[str, Any] = yaml.safe_load(file.read_bytes())
    return content


def _score(table: Mapping[str, Any], row: Mapping[str, Any]) -> PublishedScore:
    cells = {
        name: {m: v for m, v in zip(table["metrics"], row[name], strict=True) if v is not None}
        for name in (*BENCHMARKS, AVERAGE)
        if name in row
    }
    who = {name: row.get(name, "") for name in ("generator", "method", "variant")}
    known = {"paper": table["paper"], "table": table["table"], **who}
    return _made(PublishedScore, {**known, "scores": cells, "delta": row.get("delta", {})})


def _made(kind: type[T], row: Mapping[str, Any]) -> T:
    return shaped(kind(**row), kind, kind.__name__)
