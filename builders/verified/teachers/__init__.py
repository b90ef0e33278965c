"""Defines teachers: a teacher proposes stage by stage, and the graph checks (SAFE v1, section 3.2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from builders.work.shards import Annotator
from safe_stepwise.graphs.hops import AnnotatedHop
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.records import NoiseType, Question, Triple


@dataclass(frozen=True, slots=True)
class Proposal:
    """A teacher's result for a question: a path, or the reason why there is none.

    ``path`` holds triples in reasoning order (for a comparison: branch after branch). ``noise_type`` is ``"none"`` if
    the teacher claims that the path answers the question, ``"unparsed"`` if it could not judge, else the type of
    noise; ``explanation`` is one sentence. ``confidence`` lies between 0 and 1; None if the teacher gives none. A
    proposal that ``is_final`` is not checked against the graph, as its label comes from a published list.
    """

    path: tuple[Triple, ...]
    noise_type: NoiseType
    explanation: str
    confidence: float | None = 1.0
    is_final: bool = False
    is_linked: bool = False
    """Whether the path is made of names that link passages, whose relations were not read."""
    missing: AnnotatedHop | None = None
    """The annotated hop at which the path ends, as the graph lacks it."""
    note: str = ""
    """A sentence about who decided what, for the explanation of a sound row."""


class Teachers(Annotator, Protocol):
    """Makes a teacher for each question; picklable, as it goes to the workers."""

    @property
    def alone(self) -> "Teachers | None":
        """The teachers of which a model decides the doubts; None if no model is asked about another's doubts."""

    def __call__(self) -> "Teacher": ...


class Teacher(Protocol):
    """The stages of benchmark verification. A stage that fails raises ``TeacherError``."""

    @property
    def name(self) -> str:
        """The name of its `Teachers`."""

    @property
    def replies(self) -> Mapping[str, int]:
        """How many replies could be read, and how well; ``failed`` ones may come on another try."""

    async def extract(self, question: Question, passage: int) -> tuple[Triple, ...]:
        """Extract the triples that gold passage number ``passage`` (from 1) states."""

    async def resolve(self, question: Question, triples: tuple[Triple, ...]) -> Mapping[str, str]:
        """Map names of one entity to one canonical name."""

    async def propose(self, question: Question, graph: KnowledgeGraph) -> Proposal:
        """Propose a path from the question's entities to the answer within ``graph``."""


class TeacherError(Exception):
    """A stage gave no usable result; the row becomes ``unparsed``, with this reason."""
