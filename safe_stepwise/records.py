"""The records that all other modules use: frozen dataclasses without behaviour beyond validation.

Passages and steps, which models and people read, are numbered from 1; sentences from 0, as in the benchmarks' own
supporting facts.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from typing import Any, Literal, get_args

NoiseType = Literal[
    "none",
    "missing_evidence",
    "entity_confusion",
    "external_knowledge",
    "wrong_answer",
    "ambiguous_question",
    "unparsed",
    "unspecified",
    "undecided",
]
NOISE_TYPES: tuple[NoiseType, ...] = get_args(NoiseType)
NO_NOISE: tuple[NoiseType, ...] = ("none", "unparsed", "undecided")
"""The types of rows that are not called noise: sound, not judged, or undecided."""
TEACHER_TYPES: tuple[NoiseType, ...] = tuple(
    n for n in NOISE_TYPES if n not in ("unparsed", "unspecified", "undecided")
)
"""The types that a model may give a row; ``unspecified`` is noise that only an imported label reports."""

StepKind = Literal["Attribution", "Logical", "Final Answer"]
VerdictOrder = Literal["label_first", "evidence_first"]
LABEL_FIRST, EVIDENCE_FIRST = VERDICT_ORDERS = get_args(VerdictOrder)
"""The order of a verdict's fields; SAFE's is ``label_first`` (v1, section 3.4)."""
PlannerChoice = Literal["structure", "benchmark"]
"""Whether a question's structure or, as in SAFE v1 (A.9), its benchmark decides what a teacher is told about plans."""
ANSWERED, FAILED = "answered", "failed"
"""Stop reasons that all methods share; each method may have further ones."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A titled paragraph, split into sentences."""

    title: str
    sentences: tuple[str, ...]
    is_gold: bool = False

    @property
    def text(self) -> str:
        """The sentences joined by single spaces.

        >>> Passage("Oru", (" Oru is a town.", " It lies on the Vel."), True).text
        'Oru is a town. It lies on the Vel.'
        """
        return " ".join(sentence.strip() for sentence in self.sentences)


@dataclass(frozen=True, slots=True)
class Triple:
    """One edge of a knowledge graph, with the passage (from 1) and sentence (from 0) that state it, if known."""

    head: str
    relation: str
    tail: str
    passage: int | None = None
    sentence: int | None = None

    @property
    def names(self) -> tuple[str, str, str]:
        """Head, relation and tail."""
        return self.head, self.relation, self.tail


@dataclass(frozen=True, slots=True)
class SupportingFact:
    """A benchmark's pointer to a gold sentence (index from 0)."""

    title: str
    sentence: int


@dataclass(frozen=True, slots=True)
class Hop:
    """A single-hop question of a decomposition, perhaps ``"subject >> relation"``, with earlier answers as ``#1``."""

    question: str
    answer: str
    passage: int | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A benchmark row. Gold annotations that the benchmark lacks are empty."""

    id: str
    benchmark: str
    split: str
    question: str
    answer: str
    aliases: tuple[str, ...] = ()
    kind: str = ""
    hops: int = 0
    passages: tuple[Passage, ...] = ()
    supporting_facts: tuple[SupportingFact, ...] = ()
    evidence: tuple[Triple, ...] = ()
    decomposition: tuple[Hop, ...] = ()
    paths: tuple[tuple[Triple, ...], ...] = ()
    """All gold paths of a question over a graph, any of which is enough; ``evidence`` is the first."""

    @property
    def is_annotated(self) -> bool:
        """Whether the benchmark annotates how to answer the question, as `symbolic` engines need."""
        return bool(self.evidence or self.decomposition or self.supporting_facts)

    @property
    def accepted(self) -> tuple[str, ...]:
        """The answers that count as right: the answer and its aliases."""
        return (self.answer, *self.aliases)

    @property
    def gold(self) -> tuple[tuple[int, Passage], ...]:
        """The gold passages with their 1-based numbers."""
        return tuple([(n, p) for n, p in enumerate(self.passages, 1) if p.is_gold])

    def supporting_sentences(self, title: str) -> list[int]:
        """List the sentences (from 0) that are annotated for the passages with a title, whether they exist or not."""
        return [fact.sentence for fact in self.supporting_facts if fact.title == title]


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The questions of a file or dataset; ``source`` is its name without folder, ``digest`` that of its content."""

    questions: tuple[Question, ...]
    source: str
    digest: str
    split: str
    skipped: tuple[str, ...] = ()
    """Rows that could not be read, each with its place and reason."""
    rejects: tuple[bytes, ...] = ()
    """The skipped rows as lines of ``rejects.jsonl``."""


RelationPath = tuple[str, ...]
"""The relations to follow in this order; ``~relation`` is followed from tail to head."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A relation path from a topic entity."""

    topic: str
    path: RelationPath


CONSTRAINT_KINDS = ("type", "multi_entity", "explicit_time", "implicit_time", "ordinal")
"""The kinds of constraint of Deliberation on Priors, Table 1."""
_KIND_NAME = re.compile("[a-z][a-z0-9_]{0,39}")
Comparison = Literal["in", "before", "after", "first", "last", "most", "least"]
COMPARISONS: tuple[Comparison, ...] = get_args(Comparison)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition on a question's answers besides the path to them, as text and by field.

    For a ``type``, ``relation`` leads to the entities of that type; for other kinds, it leads from an answer to the
    ``entity``, the time or the number to compare. ``entity`` is the second entity, or the entity whose time is meant;
    ``time`` is a date as the question writes it. Fields without a value are empty.
    """

    kind: str  # one of the five, or induced
    text: str
    relation: str = ""
    entity: str = ""
    time: str = ""
    comparison: Comparison | Literal[""] = ""

    def __post_init__(self) -> None:
        if not _KIND_NAME.fullmatch(self.kind) or self.comparison not in ("", *COMPARISONS):
            raise ValueError(f"no constraint: {self.kind!r}, {self.comparison!r}")


@dataclass(frozen=True, slots=True)
class InducedKind:
    """A kind of constraint beside the five, as a model described it; ``batches`` of questions have it."""

    name: str
    description: str
    example: str = ""
    batches: int = 0
    simulated: bool = False

    def __post_init__(self) -> None:
        if not _KIND_NAME.fullmatch(self.name) or self.name in CONSTRAINT_KINDS:
            rule = "write a letter, then a-z, 0-9 and _, 40 at most, and none of the five kinds"
            raise ValueError(f"{self.name[:50]!r} can't be the name of a kind; {rule}")
        if not 0 < len(self.description.strip()) <= 1_000:
            raise ValueError(f"the description of {self.name} has no text, or more than 1,000 characters")


InducedKinds = tuple[InducedKind, ...]


def kind_names(kinds: InducedKinds) -> tuple[str, ...]:
    """Return the names of the five kinds of constraint and of induced ones."""
    return (*CONSTRAINT_KINDS, *(kind.name for kind in kinds))


@dataclass(frozen=True, slots=True)
class KGQuestion:
    """A question over a knowledge graph, whose answers are a set of its entities.

    All names are those of the graph and never normalised, as some of MetaQA's differ only in case.
    A question without a topic can't be answered by a path. ``gold_paths`` are the relation paths that a benchmark
    annotates, each with its topic, and ``hops`` is their length, if all have one; ``constraints`` are those that it
    annotates. All are empty or 0 without annotations.
    """

    id: str
    benchmark: str
    split: str
    question: str
    topics: tuple[str, ...]
    answers: frozenset[str]
    gold_paths: tuple[Candidate, ...] = ()
    hops: int = 0
    constraints: tuple[Constraint, ...] = ()

    def __post_init__(self) -> None:
        if not all((*self.topics, *self.answers)):
            raise ValueError("a name of a question over a graph is empty")


@dataclass(frozen=True, slots=True)
class Label:
    """The result of verifying one question: whether and why it is noise. ``teacher`` names who judged it.

    ``confidence`` (0-1): how directly the text states or denies the path; None if the teacher gives none.
    """

    noise_type: NoiseType
    explanation: str
    reasoning_path: tuple[Triple, ...]
    knowledge_graph: tuple[Triple, ...]
    teacher: str
    confidence: float | None = 1.0

    def __post_init__(self) -> None:
        if self.noise_type not in NOISE_TYPES:
            raise ValueError(f"unknown noise type {self.noise_type!r}")
        if self.confidence is not None and not 0 <= self.confidence <= 1:
            raise ValueError(f"a confidence lies between 0 and 1, not at {self.confidence!r}")

    @property
    def unverifiable(self) -> bool:
        """Whether the row is noise; False for a row that was not judged or is undecided."""
        return self.noise_type not in NO_NOISE


def select_passages(question: Question, numbers: Sequence[int]) -> Question:
    """Return a question with only the passages of these numbers (from 1), in this order.

    The decomposition gets the new numbers, and None for a passage that is left out.
    """
    places = {number: place for place, number in enumerate(numbers, 1)}
    hops = tuple(replace(hop, passage=places.get(hop.passage or 0)) for hop in question.decomposition)
    return replace(question, passages=tuple(question.passages[n - 1] for n in numbers), decomposition=hops)


@dataclass(frozen=True, slots=True)
class Step:
    """One atomic reasoning step, numbered from 1."""

    number: int
    text: str
    kind: StepKind


@dataclass(frozen=True, slots=True)
class Feedback:
    """A verifier's verdict on one step.

    ``query`` is what to search for, None unless evidence is missing. ``score`` is the verifier's probability (0-1) of
    *Correct*, None if it was not requested or the engine does not return it.
    """

    error_type: str
    diagnosis: str
    guidance: str
    query: str | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call; ``cached`` is the part of ``prompt`` from a cache, ``thought`` a part of ``completion``."""

    prompt: int = 0
    cached: int = 0
    completion: int = 0
    thought: int = 0

    def __add__(self, usage: "Usage") -> "Usage":
        """Return the tokens of two calls together.

        >>> Usage(9, 4, 40) + Usage(9, 9, 60, 20)
        Usage(prompt=18, cached=13, completion=100, thought=20)
        """
        return Usage(*map(sum, zip(astuple(self), astuple(usage), strict=True)))


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a step: the generated text, its feedback, its cost.

    ``number``: that of the step, from 1; ``usage``: tokens by role; ``retrieved``: the passages that the verdict's
    query added after the existing ones; ``verdict``: the verifier's reply if no verdict could be read in it;
    ``thoughts``: the thoughts of reasoning models before their replies, by role.

    A state machine also records the ``state`` that made the request, the JSON value that it ``read`` in the reply, and
    the ``next_state``; in SAFE's loop a state is the number of the step.
    """

    number: int
    text: str
    feedback: Feedback | None
    accepted: bool
    usage: Mapping[str, Usage] = field(default_factory=dict)
    retrieved: tuple[Passage, ...] = ()
    verdict: str = ""
    state: str = ""
    read: Any = None
    next_state: str = ""
    thoughts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sample:
    """One of several trajectories that were sampled for a question: its answer, its attempts and its verdicts.

    ``score`` is the verifier's score (0-1) of its chain; None if it was not judged.
    """

    answer: str
    attempts: tuple[Attempt, ...]
    stop_reason: str
    failure: str = ""
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The record of a method's work on one question: the accepted ``steps``, all attempts, the answer.

    ``sampled`` are all trajectories of which this one was chosen, itself included; empty without sampling.
    """

    question_id: str
    method: str
    steps: tuple[Step, ...]
    attempts: tuple[Attempt, ...]
    answer: str
    stop_reason: str
    failure: str = ""
    """The reason of a failure; empty without one."""
    sampled: tuple[Sample, ...] = ()


def all_attempts(trajectory: Trajectory) -> tuple[Attempt, ...]:
    """Return all attempts that cost a request: the trajectory's, or those of all its samples, judging included."""
    if not trajectory.sampled:
        return trajectory.attempts
    return tuple(attempt for sample in trajectory.sampled for attempt in sample.attempts)


_OMITTED_IF_EMPTY = frozenset(
    {"thoughts", "thought", "thought_tokens", "score", "unsure", "sampled", "constraints", "paths"}
)
"""Fields that JSON leaves out if they are empty, as they mostly are."""


def canonical_json(value: Any) -> str:
    """Write a value as canonical JSON: sorted keys, no spaces, UTF-8 kept; dataclasses become objects.

    >>> canonical_json({"b": 1, "a": ["é"]})
    '{"a":["é"],"b":1}'
    """
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=as_object)


def as_object(noun: Any) -> Any:
    """Convert a dataclass to a mapping, or a set to a sorted list, for the argument ``default`` of `json.dumps`.

    >>> as_object(frozenset("ba"))
    ['a', 'b']
    """
    if isinstance(noun, frozenset):
        return sorted(noun)
    values = {f.name: getattr(noun, f.name) for f in fields(noun)}
    # A score of 0.0 is not empty.
    return {n: value for n, value in values.items() if n not in _OMITTED_IF_EMPTY or value or isinstance(value, float)}


def identity(value: Any) -> str:
    """Return the identity of a value: the SHA-256 (64 hex digits) of its canonical JSON."""
    # A model's reply may hold half of a surrogate pair, which plain UTF-8 refuses.
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()
