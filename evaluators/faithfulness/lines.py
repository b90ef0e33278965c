"""One outcome, judged: the noun of this room, and how it is written down."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from evaluators.comparison.systems import System
from evaluators.faithfulness.said import Kind
from evaluators.outcomes import Outcome
from safe_stepwise.checking.faithfulness.chains import ChainVerdict, Rule, Verdict, verdict_row
from safe_stepwise.records import Question

RULES: tuple[Rule, ...] = ("house", "paper")
Verdicts = Mapping[Rule, ChainVerdict]
Asked = tuple[Outcome, Question]
"""An outcome with what was asked, its annotations included."""
AnswerBy = Literal["exact_match", "judge", "rule"]
ANSWERS: tuple[AnswerBy, ...] = get_args(AnswerBy)
COLUMNS = (*get_args(Verdict), *(kind for kind in get_args(Kind) if kind != "chain"))
"""What a question may come to under a rule."""


@dataclass(frozen=True, slots=True)
class Options:
    """How chains are judged; ``retrieval`` (by its name) and ``sigma`` are the paper's rule's."""

    rules: tuple[Rule, ...] = RULES
    retrieval: str = "words"
    sigma: float | None = None
    """None: the paper's."""


DEFAULT = Options()


@dataclass(frozen=True, slots=True)
class Line:
    """One outcome, judged; README.md says how it is written.

    ``taken``: as what a vote is told; ``question``: what was asked; ``steps``: numbers and texts of
    the chain; ``verdicts`` and, of a vote, the attempts that they are of, by rule.
    """

    outcome: Outcome
    question: Question
    system: System
    taken: str
    response: Kind
    steps: tuple[tuple[int, str], ...] = ()
    verdicts: Verdicts = field(default_factory=dict)
    samples: Mapping[Rule, int] = field(default_factory=dict)

    @property
    def benchmark(self) -> str:
        return self.outcome.benchmark

    @property
    def is_exact(self) -> bool:
        return self.outcome.exact_match == 1


def outcome_of(line: Line, rule: Rule) -> str:
    """One of `COLUMNS`; what there is no evidence for is unjudgeable."""
    if line.response != "chain":
        return line.response
    verdict = line.verdicts.get(rule)
    return verdict.path if verdict else "unjudgeable"


def is_right(line: Line, rule: Rule, by: AnswerBy) -> bool | None:
    """Whether an answer is right by a measure; None where nobody said."""
    if by == "exact_match":
        return line.is_exact
    if by == "judge":
        return {"correct": True, "incorrect": False}.get(line.outcome.verdict or "")
    verdict = line.verdicts.get(rule)
    # The rules compare no answer without a chain: of those that gave one, exact match does.
    return verdict.is_right if verdict else line.is_exact


def is_grounded(question: Question) -> bool:
    """Whether a question has what its chains can be judged by."""
    return bool(question.evidence or question.decomposition)


def places(lines: Sequence[Line]) -> dict[tuple[System, str], int]:
    """Where each system stands among `systems`, by itself and how it is taken."""
    keys = dict.fromkeys((line.system, line.taken) for line in lines)
    return {key: place for place, key in enumerate(keys)}


def repeated(lines: Iterable[Line]) -> Iterator[tuple[tuple[str, str, int], Line]]:
    """Lines of one system by question: those that share an id are numbered in their order."""
    seen = Counter[tuple[str, str]]()
    for line in lines:
        key = line.benchmark, line.outcome.question_id
        yield (*key, seen[key]), line
        seen[key] += 1


def row_of(line: Line, system: int) -> dict[str, Any]:
    """A line of ``faithfulness.jsonl``; ``system`` is its place among the systems."""
    return {
        "system": system,
        "benchmark": line.benchmark,
        "question_id": line.outcome.question_id,
        "answer": line.outcome.trajectory.answer,
        "exact_match": line.is_exact,
        "judge": line.outcome.verdict,
        "response": line.response,
        "steps": [{"number": number, "text": text} for number, text in line.steps],
        "rules": {
            rule: verdict_row(verdict) | ({"sample": line.samples[rule]} if rule in line.samples else {})
            for rule, verdict in line.verdicts.items()
        },
    }
