"""Who proposes: a teacher answers stage by stage, the graph checks (SAFE v1, section 3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from builders.work.shards import Annotator
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.records import NoiseType, Question, Triple


@dataclass(frozen=True, slots=True)
class Proposal:
    """A teacher's last word on a question: a path, or why there is none.

    ``path`` holds triples in reasoning order (of a comparison: branch after branch). ``noise_type`` is ``"none"`` when
    the teacher claims the path answers the question, ``"unparsed"`` when it could not judge, else the noise it saw;
    ``explanation`` is one sentence. ``confidence`` (0-1) says how sure the teacher is of that; None if it does not
    say. What is ``settled`` stands whatever the graph says: the label is another's.
    """

    path: tuple[Triple, ...]
    noise_type: NoiseType
    explanation: str
    confidence: float | None = 1.0
    settled: bool = False


class Teachers(Annotator, Protocol):
    """Makes a teacher for each question; picklable, as it goes to the workers."""

    def __call__(self) -> Teacher: ...


class Teacher(Protocol):
    """The stages of benchmark verification. A stage that fails raises ``TeacherError``."""

    @property
    def name(self) -> str:
        """That of its `Teachers`."""

    @property
    def replies(self) -> Mapping[str, int]:
        """How many replies could be read, and how well; ``failed`` ones may come on another try."""

    async def extract(self, question: Question, passage: int) -> tuple[Triple, ...]:
        """Triples that gold passage number ``passage`` (from 1) states."""

    async def glean(self, question: Question, passage: int, known: tuple[Triple, ...]) -> tuple[Triple, ...]:
        """Triples that ``known`` overlooked; empty ends the gleaning."""

    async def resolve(self, question: Question, triples: tuple[Triple, ...]) -> Mapping[str, str]:
        """Surface form to canonical form, for names that mean one entity."""

    async def propose(self, question: Question, graph: KnowledgeGraph) -> Proposal:
        """A path from the question's entities to the answer within ``graph``."""


class TeacherError(Exception):
    """A stage gave nothing that can be used; the row becomes ``unparsed``, with this reason."""
