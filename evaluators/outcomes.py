"""The outcomes of a run of `evaluate_stepwise`, one a question and system, and the questions of the run.

``trajectories.jsonl`` holds them, one canonical JSON object a line with the fields of `Outcome`;
``questions.jsonl`` holds the questions.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from safe_stepwise.errors import UserError
from safe_stepwise.methods.limits import retries_of
from safe_stepwise.methods.running import LoopStatistics, statistics
from safe_stepwise.metric.judge import JUDGED
from safe_stepwise.records import Hop, Passage, Question, Trajectory, Triple, as_object, canonical_json
from safe_stepwise.store import boundary, files, names
from safe_stepwise.store.grouping import grouped as grouped

Verdict = Literal["correct", "incorrect", "unscored"]
Metric = Literal["exact_match", "f1", "accuracy"]
METRIC_NAMES: dict[Metric, str] = {"exact_match": "EM", "f1": "F1", "accuracy": "Acc"}
METRICS = tuple(METRIC_NAMES)
ANEW = "make it anew with safe-stepwise evaluate_stepwise"
GIVE = "give the --output of safe-stepwise evaluate_stepwise (or evaluate_deliberation)"
DROP_GOLD, CORPUS, PASSAGES = "drop_gold", "corpus", "passages"
"""Conditions of a run: a gold passage is removed; the corpus to search; all passages are shown, not ten. The
conditions of the judge are in `JUDGED`."""
T = TypeVar("T")
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question, answered by one method with its players, and the scores of the answer."""

    benchmark: str
    method: str
    players: Mapping[str, str]
    """The engines' names, without addresses, by the method's roles."""
    options: Mapping[str, Any]
    """The method's options, by name."""
    question_id: str
    exact_match: float
    f1: float
    verdict: Verdict | None
    """The judge's verdict; None without a judge."""
    trajectory: Trajectory
    simulated: bool
    """Whether an engine without a model took part, the judge included."""
    judge: str = ""
    """The judge's reason."""
    conditions: Mapping[str, Any] = field(default_factory=dict)
    """Conditions that set its system apart, plain values by name; most systems have none."""
    measures: Mapping[str, Any] = field(default_factory=dict)
    """Further measures of prompting methods (`evaluators.prompting.measures`)."""

    @property
    def system(self) -> dict[str, Any]:
        """The method, players, options and conditions, as records have them."""
        fields = {"players": self.players, "options": self.options, "conditions": self.conditions}
        return {"method": self.method, **{name: dict(values) for name, values in fields.items()}}

    def to_json(self) -> str:
        """The outcome as one line, without the newline."""
        content = as_object(self)
        if not self.measures:
            del content["measures"]
        return canonical_json(content)


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """A question as a run put it, for readers of the outcomes."""

    benchmark: str
    id: str
    question: str
    references: tuple[str, ...]
    passages: tuple[Passage, ...]
    conditions: Mapping[str, Any] = field(default_factory=dict)
    """The conditions of the run that change the question (`asking_conditions`)."""
    evidence: tuple[Triple, ...] = ()
    """The benchmark's annotations, like ``decomposition`` and ``kind``."""
    decomposition: tuple[Hop, ...] = ()
    kind: str = ""
    paths: tuple[tuple[Triple, ...], ...] = ()

    @classmethod
    def from_question(cls, question: Question, conditions: Mapping[str, Any]) -> "QuestionRecord":
        """Make the record of a question that a run put under ``conditions``."""
        q = question
        identity = (q.benchmark, q.id, q.question, q.accepted, q.passages)
        return cls(*identity, asking_conditions(conditions), q.evidence, q.decomposition, q.kind, q.paths)

    @property
    def as_question(self) -> Question:
        """The question, as far as the record keeps it."""
        return Question(
            *(self.id, self.benchmark, "", self.question),
            *(next(iter(self.references), ""), self.references[1:], self.kind),
            passages=self.passages,
            evidence=self.evidence,
            decomposition=self.decomposition,
            paths=self.paths,
        )

    def to_json(self) -> str:
        """The question as one line, without the newline and without annotations that are empty."""
        content = as_object(self)
        for name in ("evidence", "decomposition", "kind"):
            if not content[name]:
                del content[name]
        return canonical_json(content)


def numbered(items: Iterable[T], key: Callable[[T], K]) -> Iterator[tuple[tuple[K, int], T]]:
    """Yield items with their keys; items that share a key are numbered from 0 in their order.

    >>> [key for key, _ in numbered(["a1", "b1", "a2"], lambda item: item[0])]
    [('a', 0), ('b', 0), ('a', 1)]
    """
    counts = Counter[K]()
    for item in items:
        yield ((group := key(item)), counts[group]), item
        counts[group] += 1


def conditions_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the conditions that a run's ``settings`` put its systems under; most runs have none.

    >>> conditions_of({"drop_gold": True, "corpus": {"name": "pages.jsonl", "sha256": 8 * "01ab"}})
    {'drop_gold': True, 'corpus': 'pages.jsonl@01ab01ab01ab'}
    """
    conditions = {name: settings[name] for name in (DROP_GOLD, *JUDGED) if settings.get(name)}
    if corpus := settings.get(CORPUS):
        conditions[CORPUS] = f"{corpus['name']}@{corpus['sha256'][:12]}"
    if settings.get(PASSAGES):
        conditions[PASSAGES] = settings[PASSAGES]
    return conditions


def asking_conditions(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the conditions that change the question itself, and not only how it is answered.

    >>> asking_conditions({"drop_gold": True, "corpus": "pages.jsonl@0123"})
    {'drop_gold': True}
    """
    return {name: value for name, value in conditions.items() if name in (DROP_GOLD, PASSAGES)}


def read_outcomes(folder: Path) -> Iterator[Outcome]:
    """Yield a folder's outcomes; raises ``UserError`` with the line's number."""
    return _read_records(files.locate_lines(folder, names.TRAJECTORIES), Outcome, "the outcome")


def read_questions(folder: Path) -> Iterator[QuestionRecord]:
    """Yield the questions in a run's folder; raises ``UserError`` with the line's number."""
    return _read_records(files.locate_lines(folder, names.QUESTIONS), QuestionRecord, "the question")


def read_results(folder: Path) -> dict[str, Any]:
    """Read the record of an evaluation; raises ``UserError`` for a folder without one that has ended."""
    file = folder / names.RESULTS
    try:
        record: dict[str, Any] = boundary.read_json(file)
        conditions_of(record["settings"])  # raises where the settings lack something
        return record
    except FileNotFoundError:
        mend = "it has not ended: run the same command again" if (folder / f".{names.TRAJECTORIES}").exists() else GIVE
        raise UserError(f"{folder}: no {names.RESULTS} of an evaluation in it; {mend}") from None
    except (KeyError, TypeError, AttributeError):
        reason = "not the record of an evaluation"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    raise UserError(f"{file}: cannot be read ({reason}); run the evaluation again")


def statistics_of(outcomes: Sequence[Outcome], roles: Sequence[str] = ()) -> LoopStatistics:
    """Return the statistics of one setting's trajectories; ``roles`` are counted even if no one played them."""
    return statistics([outcome.trajectory for outcome in outcomes], retries_of(outcomes[0].options), roles)


def _read_records(file: Path, kind: type[T], label: str) -> Iterator[T]:
    for place, line in files.read_lines(file, bytes, label, GIVE):
        with files.explain_line(f"{place}: cannot be read", ANEW):
            record = boundary.read(kind, boundary.parse_json(line), label)
        yield record
