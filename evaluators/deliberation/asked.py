"""What is evaluated: a question, what its graph knows, and the paths that are known to be right."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from safe_stepwise.methods.deliberation import Knowledge
from safe_stepwise.records import KGQuestion, RelationPath

Gold = Mapping[str, tuple[RelationPath, ...]]
"""The right paths by topic entity; a topic without any is not in it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it is put, with its gold paths as far as they are known."""

    question: KGQuestion
    template: str
    """Its words around the topics (`methods.path_proposing.masked`)."""
    gold: Gold


class Source(Protocol):
    """Where questions and graphs come from."""

    @property
    def asked(self) -> tuple[Asked, ...]:
        """All of them."""

    @property
    def graph(self) -> str:
        """What tells the graph from all others, and how it is walked."""

    def knowledge(self) -> Iterator[Knowledge]:
        """What is known to each question, in their order: one at a time, as graphs are large."""
