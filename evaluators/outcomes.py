"""What a run of `evaluate_stepwise` wrote down: one outcome a question and system.

``trajectories.jsonl`` holds them, one canonical JSON object a line with the fields of `Outcome`;
``questions.jsonl`` what they were asked.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from safe_stepwise.errors import UserError
from safe_stepwise.methods.limits import retries_of
from safe_stepwise.methods.running import LoopStatistics, statistics
from safe_stepwise.methods.written import NO_LINE as NO_LINE
from safe_stepwise.methods.written import trajectory_of as trajectory_of
from safe_stepwise.metric.judge import JUDGED
from safe_stepwise.records import Hop, Passage, Question, Trajectory, Triple, as_object, canonical_json
from safe_stepwise.store import boundary
from safe_stepwise.store.codec import passage_of
from safe_stepwise.store.names import QUESTIONS, TRAJECTORIES
from safe_stepwise.store.parsing import parse_json

Verdict = Literal["correct", "incorrect", "unscored"]
Metric = Literal["exact_match", "f1", "accuracy"]
METRIC_NAMES: dict[Metric, str] = {"exact_match": "EM", "f1": "F1", "accuracy": "Acc"}
METRICS = tuple(METRIC_NAMES)
GIVE = "give the --output of safe-stepwise evaluate_stepwise (or evaluate_deliberation)"
DROP_GOLD, CORPUS, PASSAGES = "drop_gold", "corpus", "passages"
"""Conditions: a gold passage is taken away; what is searched; all passages are shown, not ten. So
are those of the judge (`JUDGED`)."""
_ANNOTATED = ("evidence", "decomposition", "kind")
"""Of a question, what is left out where there is none."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question, answered by one method with its players, and what the answer is worth."""

    benchmark: str
    method: str
    players: Mapping[str, str]
    """The engines' names, without addresses, by the method's roles."""
    options: Mapping[str, Any]
    """The method's, by name."""
    question_id: str
    exact_match: float
    f1: float
    verdict: Verdict | None
    """The judge's; None where none was asked for."""
    trajectory: Trajectory
    simulated: bool
    """Whether an engine without a model took part, the judge included."""
    judge: str = ""
    """Why the judge said so."""
    conditions: Mapping[str, Any] = field(default_factory=dict)
    """What else sets its system apart, plain values by name; most have none."""
    measures: Mapping[str, Any] = field(default_factory=dict)
    """What else it is worth, of prompting methods (`evaluators.prompting.measures`)."""

    def __post_init__(self) -> None:
        if self.verdict not in (None, *get_args(Verdict)):
            raise ValueError(f"unknown verdict {self.verdict!r}")

    def to_json(self) -> str:
        """The outcome as one line, without the newline."""
        content = as_object(self)
        if not self.measures:
            del content["measures"]
        return canonical_json(content)

    @classmethod
    def from_json(cls, line: str | bytes) -> Outcome:
        """The outcome that a line holds; one of `NO_LINE` for a line that is none."""
        content = _of_today(parse_json(line))
        found = cls(**{**content, "trajectory": trajectory_of(content["trajectory"])})
        return boundary.read(cls, found, "the outcome")


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """A question as it was asked, for those who read the outcomes."""

    benchmark: str
    id: str
    question: str
    references: tuple[str, ...]
    passages: tuple[Passage, ...]
    conditions: Mapping[str, Any] = field(default_factory=dict)
    """Those of `asked_under` that it was asked under."""
    evidence: tuple[Triple, ...] = ()
    """The benchmark's own, as are ``decomposition`` and ``kind``; older folders have none."""
    decomposition: tuple[Hop, ...] = ()
    kind: str = ""

    @classmethod
    def of(cls, asked: Question, conditions: Mapping[str, Any]) -> QuestionRecord:
        """The record of a question that was asked under ``conditions``."""
        return cls(
            asked.benchmark,
            asked.id,
            asked.question,
            asked.accepted,
            asked.passages,
            asked_under(conditions),
            asked.evidence,
            asked.decomposition,
            asked.kind,
        )

    @property
    def asked(self) -> Question:
        """The question, as far as it was written down."""
        return Question(
            self.id,
            self.benchmark,
            "",
            self.question,
            next(iter(self.references), ""),
            self.references[1:],
            self.kind,
            passages=self.passages,
            evidence=self.evidence,
            decomposition=self.decomposition,
        )

    def to_json(self) -> str:
        """The question as one line, without the newline."""
        content = as_object(self)
        for name in _ANNOTATED:
            if not content[name]:
                del content[name]
        return canonical_json(content)

    @classmethod
    def from_json(cls, line: str | bytes) -> QuestionRecord:
        """The question that a line holds; one of `NO_LINE` for a line that is none."""
        content = parse_json(line)
        found = cls(
            **{
                **content,
                "references": tuple(content["references"]),
                "passages": tuple(map(passage_of, content["passages"])),
                "evidence": tuple(Triple(**triple) for triple in content.get("evidence", ())),
                "decomposition": tuple(Hop(**hop) for hop in content.get("decomposition", ())),
            }
        )
        return boundary.read(cls, found, "the question")


def conditions_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The conditions that a run's ``settings`` put its systems under; none where all is whole.

    >>> conditions_of({"drop_gold": True, "corpus": {"name": "pages.jsonl", "sha256": 8 * "01ab"}})
    {'drop_gold': True, 'corpus': 'pages.jsonl@01ab01ab01ab'}
    """
    found = {name: settings[name] for name in (DROP_GOLD, *JUDGED) if settings.get(name)}
    if corpus := settings.get(CORPUS):
        found[CORPUS] = f"{corpus['name']}@{corpus['sha256'][:12]}"
    if settings.get(PASSAGES):
        found[PASSAGES] = settings[PASSAGES]
    return found


def asked_under(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """The conditions that change what is asked, and not only how.

    >>> asked_under({"drop_gold": True, "corpus": "pages.jsonl@0123"})
    {'drop_gold': True}
    """
    return {name: value for name, value in conditions.items() if name in (DROP_GOLD, PASSAGES)}


def read_outcomes(folder: Path) -> Iterator[Outcome]:
    """The outcomes in a run's folder, in their order.

    Raises ``UserError`` for a file that can't be read, with the number of the line.
    """
    return _lines(place_of(folder, TRAJECTORIES), Outcome.from_json)


def read_questions(folder: Path) -> Iterator[QuestionRecord]:
    """The questions in a run's folder, in their order; raises as `read_outcomes` does."""
    return _lines(place_of(folder, QUESTIONS), QuestionRecord.from_json)


def statistics_of(outcomes: Sequence[Outcome], roles: Sequence[str] = ()) -> LoopStatistics:
    """What the trajectories of one setting came to; ``roles`` are counted even if not asked."""
    retries = retries_of(outcomes[0].options)
    return statistics([outcome.trajectory for outcome in outcomes], retries, roles)


@contextmanager
def reading(file: Path, number: int) -> Iterator[None]:
    """Raise ``UserError`` with the number of a file's line that holds something else."""
    try:
        yield
    except NO_LINE as error:
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__} "
        reason = " ".join(f"{kind}{error}".split())[:200]
        raise UserError(
            f"{file}, line {number}: cannot be read ({reason}); make it anew with safe-stepwise evaluate_stepwise"
        ) from None


def place_of(folder: Path, name: str) -> Path:
    """Where a run's file of lines is; of a report that was published it is packed."""
    packed = folder / f"{name}.gz"
    return packed if packed.is_file() and not (folder / name).exists() else folder / name


def _lines(file: Path, read: Callable[[bytes], T]) -> Iterator[T]:
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                with reading(file, number):
                    found = read(line)
                yield found
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror or error}); {GIVE}") from None
    except (EOFError, zlib.error) as error:
        raise UserError(f"{file}: cannot be read ({error}); {GIVE}") from None


def _of_today(content: dict[str, Any]) -> dict[str, Any]:
    """An outcome of before methods had roles and options of their own, as one of today."""
    if "players" in content:
        return content
    # Of the three methods there were, one had a verifier of its own.
    roles = ("generator", "verifier") if content["method"] == "safe" else ("generator",)
    named = {role: content.pop(role) for role in ("generator", "verifier")}
    options = {name: content.pop(name) for name in ("max_steps", "max_retries")}
    players = {role: named[role] for role in roles}
    return {**content, "players": players, "options": options}
