"""The nouns everything else speaks: frozen, hashable, no behaviour beyond validation.

Numbers follow one rule: what a model or a person reads counts from 1 (passages, steps); sentence
indices count from 0, as in the benchmarks' own supporting facts.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
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
]
NOISE_TYPES: tuple[NoiseType, ...] = get_args(NoiseType)
TEACHER_TYPES: tuple[NoiseType, ...] = tuple(
    type_ for type_ in NOISE_TYPES if type_ not in ("unparsed", "unspecified")
)
"""What a teacher may call a row that it judged; *unspecified* is noise by another's label alone."""

StepKind = Literal["Attribution", "Logical", "Final Answer"]
VerdictOrder = Literal["label_first", "evidence_first"]
LABEL_FIRST, EVIDENCE_FIRST = VERDICT_ORDERS = get_args(VerdictOrder)
"""Which of its parts a verdict begins with; SAFE's is ``label_first`` (v1, section 3.4)."""
ANSWERED, FAILED = "answered", "failed"
"""How any method may end; the other stop reasons are a method's own."""


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
    """One edge of a knowledge graph, with where it was read (passage from 1, sentence from 0)."""

    head: str
    relation: str
    tail: str
    passage: int | None = None
    sentence: int | None = None


@dataclass(frozen=True, slots=True)
class SupportingFact:
    """A benchmark's pointer to a gold sentence (index from 0)."""

    title: str
    sentence: int


@dataclass(frozen=True, slots=True)
class Hop:
    """One single-hop question of a benchmark's own decomposition.

    ``question`` may be ``"subject >> relation"`` and may refer to earlier answers as ``#1``.
    """

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

    @property
    def is_annotated(self) -> bool:
        """Whether its benchmark says how it is answered, which `symbolic` engines go by."""
        return bool(self.evidence or self.decomposition or self.supporting_facts)

    @property
    def accepted(self) -> tuple[str, ...]:
        """The answers that count as right: the answer and its aliases."""
        return (self.answer, *self.aliases)

    @property
    def gold(self) -> tuple[tuple[int, Passage], ...]:
        """The gold passages with their 1-based numbers."""
        return tuple([(n, p) for n, p in enumerate(self.passages, 1) if p.is_gold])


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions as they were read. ``source`` names them without their folder, ``digest`` pins their content."""

    questions: tuple[Question, ...]
    source: str
    digest: str
    split: str
    skipped: tuple[str, ...] = ()
    """Rows that could not be read, each with its place and reason."""
    rejects: tuple[bytes, ...] = ()
    """The same rows as lines of ``rejects.jsonl``."""


RelationPath = tuple[str, ...]
"""Relations to follow one after the other, ``~relation`` from tail to head."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A relation path from a topic entity."""

    topic: str
    path: RelationPath


@dataclass(frozen=True, slots=True)
class KGQuestion:
    """A question over a knowledge graph, whose answers are a set of its entities.

    Names, of topics and answers too, are those of the graph and never normalised: MetaQA's differ by no more than
    their case, at times. ``gold_paths`` are the relation paths that a benchmark annotates, each from the topic that it
    is right from, and ``hops`` their length; what it does not say is empty or 0.
    """

    id: str
    benchmark: str
    split: str
    question: str
    topics: tuple[str, ...]
    answers: frozenset[str]
    gold_paths: tuple[Candidate, ...] = ()
    hops: int = 0

    def __post_init__(self) -> None:
        if not self.topics or not all((*self.topics, *self.answers)):
            raise ValueError("a question over a graph has a topic, and no name in it is empty")


ConstraintKind = Literal["type", "multi_entity", "explicit_time", "implicit_time", "ordinal"]
CONSTRAINT_KINDS: tuple[ConstraintKind, ...] = get_args(ConstraintKind)
"""Deliberation on Priors, Table 1."""
Comparison = Literal["in", "before", "after", "first", "last", "most", "least"]
COMPARISONS: tuple[Comparison, ...] = get_args(Comparison)


@dataclass(frozen=True, slots=True)
class Constraint:
    """What a question asks of its answers beside the path to them, in words and field by field.

    ``relation`` leads to entities of the ``type``, else from an answer to the ``entity``, the time
    or the number that counts. ``entity`` is the other entity, or the one whose time is meant,
    ``time`` a date as it is written. What is not said is empty.
    """

    kind: ConstraintKind
    text: str
    relation: str = ""
    entity: str = ""
    time: str = ""
    comparison: Comparison | Literal[""] = ""

    def __post_init__(self) -> None:
        if self.kind not in CONSTRAINT_KINDS or self.comparison not in ("", *COMPARISONS):
            raise ValueError(f"no constraint: {self.kind!r}, {self.comparison!r}")


@dataclass(frozen=True, slots=True)
class Label:
    """What verification found out about one question (DESIGN section 5).

    ``confidence`` (0-1): how directly the text states or denies the path, None where nobody said.
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
        """Whether noise was found. An ``unparsed`` row was not judged, so this is False there."""
        return self.noise_type not in ("none", "unparsed")


@dataclass(frozen=True, slots=True)
class Step:
    """One atomic reasoning step, numbered from 1."""

    number: int
    text: str
    kind: StepKind


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a verifier returns about one step; ``query`` only with ``Missing Evidence``."""

    error_type: str
    diagnosis: str
    guidance: str
    query: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call; ``cached`` counts the part of ``prompt`` served from a prefix cache, ``thought`` the part of
    ``completion`` that a reasoning model spent before it replied."""

    prompt: int = 0
    cached: int = 0
    completion: int = 0
    thought: int = 0


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try: what was generated, what was said of it, what it cost.

    ``number``: of the step that was tried, from 1; ``usage``: tokens by the role of who was asked;
    ``retrieved``: the passages that the verdict's query brought in, behind those there were;
    ``verdict``: the verifier's reply where no verdict could be read in it; ``thoughts``: what reasoning models thought
    before they replied, by their role.

    A method that goes from state to state says which ``state`` asked, what it ``read`` in the reply
    (a JSON value) and the ``next_state``; the state of SAFE's loop is the number of its step.
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
class Trajectory:
    """Everything a run did with one question; ``stop_reason`` is its method's own word."""

    question_id: str
    method: str
    steps: tuple[Step, ...]
    attempts: tuple[Attempt, ...]
    answer: str
    stop_reason: str
    failure: str = ""
    """Why it failed, if it did."""


_SPARSE = frozenset({"thoughts", "thought", "thought_tokens"})
"""Fields that records leave out where they are empty, as most are."""


def canonical_json(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, UTF-8 kept; dataclasses as objects.

    >>> canonical_json({"b": 1, "a": ["é"]})
    '{"a":["é"],"b":1}'
    """
    separators = (",", ":")
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=separators, default=as_object)


def as_object(noun: Any) -> Any:
    """The ``default`` of `json`: dataclasses as objects, one at a time, without the copies of
    `asdict`, and sets as sorted lists.

    >>> as_object(frozenset("ba"))
    ['a', 'b']
    """
    if isinstance(noun, frozenset):
        return sorted(noun)
    return {f.name: getattr(noun, f.name) for f in fields(noun) if f.name not in _SPARSE or getattr(noun, f.name)}


def identity(value: Any) -> str:
    """SHA-256 (64 hex digits) of a value's canonical JSON: the identity of anything here."""
    # What a model said may hold half of a surrogate pair, which plain UTF-8 refuses.
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()
