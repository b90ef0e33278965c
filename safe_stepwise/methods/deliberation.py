"""Deliberation on Priors: relation paths are chosen, carried out, verified and thought over.

Ma et al., arXiv 2505.15210, sections 3.2 and 3.3. What the loop has to know of the graph it asks a
`Knowledge` that its caller hands in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from safe_stepwise.engines.client import Client
from safe_stepwise.records import KGQuestion, RelationPath, Trajectory


@dataclass(frozen=True, slots=True)
class Candidate:
    """A relation path from a topic entity."""

    topic: str
    path: RelationPath


class Knowledge(Protocol):
    """What is asked of a graph."""

    def executable(self, topic: str) -> Sequence[RelationPath]:
        """All paths that lead somewhere from a topic, shortest first, then by name."""

    def ranked(self, candidate: Candidate) -> Sequence[str]:
        """What a path leads to, by the number of its instantiations, then by name."""

    def chains(self, candidate: Candidate, most: int) -> Sequence[tuple[str, ...]]:
        """Its instantiations entity by entity, the first ``most`` of them by name."""


@dataclass(frozen=True, slots=True)
class Deliberating:
    """Options of the loop."""

    introspection: bool = True
    """Whether a path that does not suffice is followed by another (Table 3)."""
    predefined: bool = True
    """Whether constraints are extracted and verified (Table 3)."""


async def deliberate(
    question: KGQuestion,
    pool: Sequence[Candidate],
    knowledge: Knowledge,
    clients: Mapping[str, Client],
    options: Deliberating,
) -> Trajectory:
    """Everything that was done to answer one question, ``clients`` having one for ``generator``."""
    raise NotImplementedError


def answers_of(trajectory: Trajectory) -> tuple[str, ...]:
    """The answers of a trajectory, the best first; none of one that failed."""
    raise NotImplementedError
