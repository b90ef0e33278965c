"""What SG-FSM's machines remember of a question under way."""

from dataclasses import dataclass
from typing import Any

from safe_stepwise.methods.prompting import Iterating
from safe_stepwise.methods.scene import AskedScene, Found
from safe_stepwise.records import Feedback, Question


@dataclass(frozen=True, slots=True)
class Memory:
    """A question under way.

    ``current`` is the question as it was last rewritten, ``entries`` how often q0 was asked;
    ``rejected`` are the replies to the request at hand that could not be read, ``refused`` the one
    that a redo shows. ``faults`` are finds, or first questions, that a verdict took back, with what
    was said of each; ``avoided`` are those of first questions while another one is searched for.
    """

    question: Question
    options: Iterating
    current: str
    entries: int = 0
    is_simple: bool = False
    subquestion: str = ""
    found: tuple[Found, ...] = ()
    answer: str = ""
    rejected: tuple[str, ...] = ()
    why: str = ""
    redone: int = 0
    refused: str = ""
    faults: tuple[tuple[str, Feedback], ...] = ()
    avoided: tuple[tuple[str, Feedback], ...] = ()

    @classmethod
    def of(cls, question: Question, options: Iterating) -> "Memory":
        """The memory at the start."""
        return cls(question, options, question.question)

    @property
    def best(self) -> str:
        """The answer, else what was found last."""
        return self.answer or (self.found[-1].answer if self.found else "")

    def scene(self, **more: Any) -> AskedScene:
        """What a simulating player goes by."""
        return AskedScene(
            self.question,
            self.options.evidence,
            self.current,
            self.subquestion,
            self.found,
            self.answer,
            faults=tuple(said for _, said in self.faults),
            **more,
        )


def remarks(said: Feedback) -> tuple[tuple[str, str], ...]:
    """What is told of a verdict that took a find back."""
    told = [("Fault", said.error_type), ("Why", said.diagnosis), ("Now", said.guidance)]
    return tuple((name, text) for name, text in told if text.strip())
