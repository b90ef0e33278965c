"""Scenes: what a symbolic player needs to know about a request beside its messages, above all the annotations.

A method attaches a scene to each request. Engines with a model ignore it, so that no model sees an annotation. The
``key`` of a scene is a JSON value with what the messages do not already say; it enters the key of a cached reply.
"""

from dataclasses import asdict, dataclass
from typing import Any

from safe_stepwise.records import Candidate, Feedback, KGQuestion, Passage, Question, Step, Triple, identity

JUDGE = "judge"
"""The role of the judge of answers."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A question with its annotations, and how far a method has come with it.

    ``passage`` is the number (from 1) of the passage that the request is about, ``previous`` the accepted steps,
    ``step`` the step to judge, ``feedback`` the verdict on a step that has to be rewritten. ``searches`` are the
    numbers of steps that only search. ``numbers`` are those of the passages in the prompt; None: all are.
    """

    question: Question
    passage: int | None = None
    previous: tuple[Step, ...] = ()
    step: Step | None = None
    feedback: Feedback | None = None
    searches: frozenset[int] = frozenset()
    numbers: tuple[int, ...] | None = None

    @property
    def prompt_passages(self) -> tuple[Passage, ...]:
        """The passages in the prompt."""
        pages = self.question.passages
        return pages if self.numbers is None else tuple(pages[number - 1] for number in self.numbers)

    @property
    def key(self) -> list[Any]:
        """The passage and the question's annotations.

        >>> Scene(Question("q", "musique", "train", "Where is Oru?", "Marn"), 2).key
        [2, ['q', 'Marn', []]]
        """
        q = self.question
        return [self.passage, [q.id, q.answer, [*map(asdict, q.evidence), *map(asdict, q.decomposition)]]]


@dataclass(frozen=True, slots=True)
class AnswerScene:
    """An answer to judge, and the accepted answers."""

    answer: str
    accepted: tuple[str, ...]

    @property
    def key(self) -> list[Any]:
        """The whole answer, which messages may cut short, and the accepted answers."""
        return [self.answer, list(self.accepted)]


@dataclass(frozen=True, slots=True)
class PathScene:
    """A relation path to judge, and the gold path of its question."""

    question: str
    path: tuple[Triple, ...]
    gold: tuple[Triple, ...]

    @property
    def key(self) -> list[Any]:
        return [[asdict(triple) for triple in self.gold]]


@dataclass(frozen=True, slots=True)
class TripleScene:
    """A question with its annotations, the triples to choose from, and those that were chosen."""

    question: Question
    candidates: tuple[Triple, ...]
    chain: tuple[Triple, ...]

    @property
    def key(self) -> list[Any]:
        """The whole question; the messages have the triples."""
        return [identity(self.question)]


@dataclass(frozen=True, slots=True)
class SubAnswer:
    """A sub-question with its answer and the number (from 1) of the passage that gives it.

    Where a method collects evidence: the numbers of the passage's sentences (from 0), and subject, relation, object.
    """

    question: str
    passage: int
    answer: str
    sentences: tuple[int, ...] = ()
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptingScene:
    """A question with its annotations, and how far a prompting method has come with it.

    ``evidence``: replies have to give supporting facts and triples too. ``current`` is the question as last rewritten,
    ``subquestion`` the one to search for, ``sub_answers`` the earlier ones with their answers, ``answer`` the final
    answer to check. ``mends`` names the role whose last reply (the last of ``rejected``) has to be rewritten in the
    right form. ``faults`` are verdicts on rejected sub-answers. ``turns`` are a ReAct model's actions, each with its
    observation. ``numbers`` are those under which the passages are shown; empty, they are shown as 1, 2 and so on.
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
    numbers: tuple[int, ...] = ()

    @property
    def key(self) -> list[Any]:
        """The whole question, the sub-answers so far, and the role whose reply has to be rewritten."""
        return [identity(self.question), [asdict(sub_answer) for sub_answer in self.sub_answers], self.mends]


@dataclass(frozen=True, slots=True)
class PoolScene:
    """A question over a graph with its pool, each path's ends, and the ``chosen`` path from 1 (0: none yet)."""

    question: KGQuestion
    pool: tuple[tuple[Candidate, tuple[str, ...]], ...]
    tried: int = 0
    chosen: int = 0

    @property
    def key(self) -> list[Any]:
        """The digest of the whole scene: messages show only some of the ends, and no annotation."""
        return [identity(self)]
