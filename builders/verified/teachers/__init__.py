"""Who proposes: a teacher answers stage by stage, the graph checks (SAFE v1, section 3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.records import NoiseType, Question, Triple


@dataclass(frozen=True, slots=True)
class Proposal:
    """A teacher's last word on a question: a path, or why there is none.

    ``path`` holds triples in reasoning order (of a comparison: branch after branch). ``noise_type``
    is ``"none"`` when the teacher claims the path answers the question, ``"unparsed"`` when it
    could not judge, else the noise it saw; ``explanation`` is one sentence.
    """

    path: tuple[Triple, ...]
    noise_type: NoiseType
    explanation: str


class Annotator(Protocol):
    """Who gives labels or steps: a benchmark's annotations, or a model behind a client."""

    @property
    def name(self) -> str:
        """Lands in the ``teacher`` column: model and prompts' digest, nothing private."""

    @property
    def identity(self) -> str:
        """Everything that can change what it says, private or not."""

    @property
    def simulated(self) -> bool:
        """Whether it comes from a script or annotations where a model is meant to answer."""

    @property
    def own_processes(self) -> bool:
        """Whether the work is ours, to be spread over processes, and not a server's to wait for."""

    def check(self) -> None:
        """Raise ``UserError`` if it can't work, before any work is spent."""

    def progress(self) -> str:
        """How the requests stand, for the progress bar; empty without requests."""

    def close(self) -> None:
        """Free connections and files; the next use opens them again."""


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

    async def glean(
        self, question: Question, passage: int, known: tuple[Triple, ...]
    ) -> tuple[Triple, ...]:
        """Triples that ``known`` overlooked; empty ends the gleaning."""

    async def resolve(self, question: Question, triples: tuple[Triple, ...]) -> Mapping[str, str]:
        """Surface form to canonical form, for names that mean one entity."""

    async def propose(self, question: Question, graph: KnowledgeGraph) -> Proposal:
        """A path from the question's entities to the answer within ``graph``."""


class TeacherError(Exception):
    """A stage gave nothing that can be used; the row becomes ``unparsed``, with this reason."""
