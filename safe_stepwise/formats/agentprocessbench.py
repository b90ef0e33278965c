"""AgentProcessBench (arXiv 2603.14465): chats whose assistant turns people labelled, by the message's index.

``{"query_index": 0, "sample_index": 3, "question": ..., "ground_truth": {"target": ["Marn"]}, "answer_text": "Marn",
"messages": [...], "step_labels": {"2": 1, "4": -1}, "final_label": -1}``

A label is 1 (right), 0 (neutral) or -1 (wrong); ``final_label`` says whether the answer is right. The MIT licence of
its card covers the labels; questions are HotpotQA's (CC BY-SA 4.0). A chain's id is ``QUERY.SAMPLE``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from safe_stepwise.formats.chains import WRONG, Chain, StepLabel
from safe_stepwise.formats.messages import read_turns, write_turns
from safe_stepwise.records import identity
from safe_stepwise.store import boundary

StepLabels = Mapping[str, StepLabel | None]


@dataclass(frozen=True, slots=True)
class _Row:
    query_index: int
    sample_index: int
    question: str
    messages: tuple[Mapping[str, Any], ...]
    step_labels: StepLabels
    ground_truth: Mapping[str, Any] | None = None
    answer_text: str | None = None
    final_label: Literal[1, 0, -1] | None = None


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """A judge's verdicts on one chain: ``step_labels`` as in the benchmark, None for a step without a verdict."""

    judge: str
    query_index: int
    sample_index: int
    step_labels: StepLabels | None

    @property
    def id(self) -> str:
        """The chain's id."""
        return f"{self.query_index}.{self.sample_index}"


def read(row: Mapping[str, Any]) -> Chain:
    """Read a chain; raises ``ValueError`` for a row with a different schema. Only labelled turns are steps."""
    content = boundary.read(_Row, row, "the row")
    labels = {key: label for key, label in content.step_labels.items() if label is not None}
    steps, pages = read_turns(content.messages, labels)
    return Chain(
        content.question,
        tuple(step for step in steps if step.key in content.step_labels),
        f"{content.query_index}.{content.sample_index}",
        pages,
        boundary.read(tuple[str, ...], (content.ground_truth or {}).get("target") or (), "ground_truth.target"),
        content.answer_text or "",
        {1: True, -1: False}.get(content.final_label or 0),
    )


def write(chain: Chain) -> Iterator[dict[str, Any]]:
    """Write a chain in the benchmark's form; if its id is not ``QUERY.SAMPLE``, its numbers are digests."""
    query, _, sample = chain.id.partition(".")
    if not (query.isdecimal() and sample.isdecimal()):
        query, sample = (str(int(identity(text)[:8], 16)) for text in (chain.question, chain.id))
    turns = write_turns(chain.question, chain.steps, chain.passages)
    places = (str(place) for place, turn in enumerate(turns) if turn["role"] == "assistant")
    yield {
        "query_index": int(query),
        "sample_index": int(sample),
        "question": chain.question,
        "ground_truth": {"target": [*chain.references]},
        "answer_text": chain.prediction,
        "messages": turns,
        "step_labels": {place: step.label for place, step in zip(places, chain.steps, strict=True)},
        "final_label": None if chain.is_right is None else 1 if chain.is_right else WRONG,
    }
