"""What a run of `evaluate_stepwise` wrote down: one outcome a question and system.

``trajectories.jsonl`` holds them, one canonical JSON object a line with the fields of `Outcome`;
``questions.jsonl`` what they were asked.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from safe_stepwise.errors import UserError
from safe_stepwise.methods.limits import retries_of
from safe_stepwise.methods.running import LoopStatistics, statistics
from safe_stepwise.metric.judge import JUDGED
from safe_stepwise.records import Hop, Passage, Question, Trajectory, Triple, as_object, canonical_json
from safe_stepwise.store import boundary
from safe_stepwise.store.boundary import parse_json, read_json
from safe_stepwise.store.files import place_of, unpacked
from safe_stepwise.store.names import QUESTIONS, RESULTS, TRAJECTORIES

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
K = TypeVar("K")


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

    @property
    def system(self) -> dict[str, Any]:
        """What was run, as records have it."""
        parts = {"players": self.players, "options": self.options, "conditions": self.conditions}
        return {"method": self.method, **{name: dict(part) for name, part in parts.items()}}

    def to_json(self) -> str:
        """The outcome as one line, without the newline."""
        content = as_object(self)
        if not self.measures:
            del content["measures"]
        return canonical_json(content)


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
    def of(cls, question: Question, conditions: Mapping[str, Any]) -> QuestionRecord:
        """The record of a question that was asked under ``conditions``."""
        q = question
        said = (q.benchmark, q.id, q.question, q.accepted, q.passages)
        return cls(*said, asked_under(conditions), q.evidence, q.decomposition, q.kind)

    @property
    def asked(self) -> Question:
        """The question, as far as it was written down."""
        return Question(
            *(self.id, self.benchmark, "", self.question),
            *(next(iter(self.references), ""), self.references[1:], self.kind),
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


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Items by a key, groups and what is in them in the items' order.

    >>> grouped(["a1", "b1", "a2"], lambda item: item[0])
    {'a': ['a1', 'a2'], 'b': ['b1']}
    """
    found: dict[K, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def numbered(items: Iterable[T], key: Callable[[T], K]) -> Iterator[tuple[tuple[K, int], T]]:
    """Items with their keys, those that share one numbered from 0 in their order.

    >>> [key for key, _ in numbered(["a1", "b1", "a2"], lambda item: item[0])]
    [('a', 0), ('b', 0), ('a', 1)]
    """
    seen = Counter[K]()
    for item in items:
        yield ((own := key(item)), seen[own]), item
        seen[own] += 1


def conditions_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The conditions that a run's ``settings`` put its systems under; none where all is whole.

    >>> conditions_of({"drop_gold": True, "corpus": {"name": "pages.jsonl", "sha256": 8 * "01ab"}})
    {'drop_gold': True, 'corpus': 'pages.jsonl@01ab01ab01ab'}
    """
    conditions = {name: settings[name] for name in (DROP_GOLD, *JUDGED) if settings.get(name)}
    if corpus := settings.get(CORPUS):
        conditions[CORPUS] = f"{corpus['name']}@{corpus['sha256'][:12]}"
    if settings.get(PASSAGES):
        conditions[PASSAGES] = settings[PASSAGES]
    return conditions


def asked_under(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """The conditions that change what is asked, and not only how.

    >>> asked_under({"drop_gold": True, "corpus": "pages.jsonl@0123"})
    {'drop_gold': True}
    """
    return {name: value for name, value in conditions.items() if name in (DROP_GOLD, PASSAGES)}


def read_outcomes(folder: Path, conditions: Mapping[str, Any] = MappingProxyType({})) -> Iterator[Outcome]:
    """The outcomes in a run's folder, in their order; ``conditions`` are those that older lines do not tell.

    Raises ``UserError`` for a file that can't be read, with the number of the line.
    """
    outcomes = _read_lines(place_of(folder, TRAJECTORIES), Outcome, "the outcome")
    return (replace(o, conditions={**conditions, **o.conditions}) if conditions else o for o in outcomes)


def read_questions(folder: Path, conditions: Mapping[str, Any] = MappingProxyType({})) -> Iterator[QuestionRecord]:
    """The questions in a run's folder, in their order; all else is as of `read_outcomes`."""
    under = asked_under(conditions)
    questions = _read_lines(place_of(folder, QUESTIONS), QuestionRecord, "the question")
    return (replace(q, conditions={**under, **q.conditions}) if under else q for q in questions)


def read_results(folder: Path) -> dict[str, Any]:
    """The record of an evaluation in a folder; raises ``UserError`` where there is none that has ended."""
    file = folder / RESULTS
    try:
        record: dict[str, Any] = read_json(file)
        conditions_of(record["settings"])  # which has to have what it needs
        return record
    except FileNotFoundError:
        begun = (folder / f".{TRAJECTORIES}").exists()
        mend = "it has not ended: run the same command again" if begun else GIVE
        raise UserError(f"{folder}: no {RESULTS} of an evaluation in it; {mend}") from None
    except (KeyError, TypeError, AttributeError):
        reason = "not the record of an evaluation"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    raise UserError(f"{file}: cannot be read ({reason}); run the evaluation again")


def statistics_of(outcomes: Sequence[Outcome], roles: Sequence[str] = ()) -> LoopStatistics:
    """What the trajectories of one setting came to; ``roles`` are counted even if not asked."""
    retries = retries_of(outcomes[0].options)
    return statistics([outcome.trajectory for outcome in outcomes], retries, roles)


@contextmanager
def reading(file: Path, number: int) -> Iterator[None]:
    """Raise ``UserError`` with the number of a file's line that holds something else."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__} "
        reason = " ".join(f"{kind}{error}".split())[:200]
        raise UserError(
            f"{file}, line {number}: cannot be read ({reason}); make it anew with safe-stepwise evaluate_stepwise"
        ) from None


def _read_lines(file: Path, kind: type[T], what: str) -> Iterator[T]:
    try:
        with unpacked(file) as lines:
            for number, line in enumerate(lines, 1):
                with reading(file, number):
                    record = boundary.read(kind, parse_json(line), what)
                yield record
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{file}: cannot be read ({reason}); {GIVE}") from None
