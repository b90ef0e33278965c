"""What a request shows to a simulating player alone: the annotations that no model may see.

Whoever asks fills it in; engines hand it on unopened.
"""

from dataclasses import asdict, dataclass
from typing import Any

from safe_stepwise.records import Candidate, Feedback, KGQuestion, Question, Step, Triple, identity

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


@dataclass(frozen=True, slots=True)
class PathScene:
    """A relation path to judge, and the gold path of its question."""

    question: str
    path: tuple[Triple, ...]
    gold: tuple[Triple, ...]

    @property
    def key(self) -> list[Any]:
        """The gold path; messages tell the rest."""
        return [[asdict(triple) for triple in self.gold]]


@dataclass(frozen=True, slots=True)
class SubAnswer:
    """A sub-question that was answered: by which passage (from 1), and what it says.

    With evidence also the sentences (from 0) that say so, and the fact as subject, relation, object.
    """

    question: str
    passage: int
    answer: str
    sentences: tuple[int, ...] = ()
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptingScene:
    """A question with its annotations, and where a prompting method is with it.

    ``current`` is the question as last rewritten, ``subquestion`` the one to search for, ``sub_answers`` the earlier
    ones with their answers, ``answer`` the final answer to check. ``mends`` names the role whose last reply (the last
    of ``rejected``) has to be rewritten in the right form. ``faults`` are verdicts on rejected sub-answers. ``turns``
    are a ReAct model's actions, each with its observation.
    """

    question: Question
    evidence: bool = False
    current: str = ""
    subquestion: str = ""
    sub_answers: tuple[SubAnswer, ...] = ()
    answer: str = ""
    mends: str = ""
    rejected: tuple[str, ...] = ()
    faults: tuple[Feedback, ...] = ()
    turns: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> list[Any]:
        """The question, which few messages tell whole, what was found, and whose reply is meant."""
        return [identity(self.question), [asdict(sub_answer) for sub_answer in self.sub_answers], self.mends]


@dataclass(frozen=True, slots=True)
class PoolScene:
    """A question over a graph, the paths that are left of its pool with what each leads to, and
    how many were tried; ``chosen`` (from 1) is the one that was followed.
    """

    question: KGQuestion
    pool: tuple[tuple[Candidate, tuple[str, ...]], ...]
    tried: int = 0
    chosen: int = 0

    @property
    def key(self) -> list[Any]:
        """All of it: messages show few of the entities, and no annotation."""
        return [identity(self)]
