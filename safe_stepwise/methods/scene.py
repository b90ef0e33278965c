"""What a request shows to a simulating player alone: the annotations that no model may see.

Whoever asks fills it in; engines hand it on unopened.
"""

from dataclasses import asdict, dataclass
from typing import Any

from safe_stepwise.records import Feedback, Question, Step

JUDGE = "judge"
"""The role of one who judges answers, for those who ask it and those who play it."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A question with its annotations, and where a method is with it.

    ``passage`` (from 1) is the one that is meant, ``previous`` the accepted steps, ``step`` the one
    to judge, ``feedback`` what was said of a step that has to be written anew.
    """

    question: Question
    passage: int | None = None
    previous: tuple[Step, ...] = ()
    step: Step | None = None
    feedback: Feedback | None = None

    @property
    def key(self) -> list[Any]:
        """The passage and the question's annotations; messages tell the rest.

        >>> Scene(Question("q", "musique", "train", "Where is Oru?", "Marn"), 2).key
        [2, ['q', 'Marn', []]]
        """
        q = self.question
        annotations = [*map(asdict, q.evidence), *map(asdict, q.decomposition)]
        return [self.passage, [q.id, q.answer, annotations]]


@dataclass(frozen=True, slots=True)
class AnswerScene:
    """An answer to judge, and those that are accepted."""

    answer: str
    accepted: tuple[str, ...]

    @property
    def key(self) -> list[Any]:
        """The whole answer, which messages may cut short, and those accepted."""
        return [self.answer, list(self.accepted)]
