"""What the loop's user may choose: limits, rules, and where to follow the papers instead of ours.

Where the papers differ from us, or say two things, ours is the default. An option of that sort has the papers' choice
in its metadata, and a run that keeps ours does not mention it: its record is the same as if there were no choice.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from safe_stepwise.methods.prompt_sets import PromptSet, PromptsName
from safe_stepwise.records import Attempt, Passage, VerdictOrder
from safe_stepwise.taxonomy import DROPPABLE, Category

AS_PUBLISHED = "as published"
"""Key of an option's metadata: the papers' value, where that is not ours."""
Search = Callable[[str], Sequence[Passage]]
"""From a query to passages, the best first; the loop takes the first of them alone."""
OnExhausted = Literal["accept", "drop"]
FeedbackForm = Literal["full", "diagnosis", "guidance"]
FEEDBACK_FORMS: tuple[FeedbackForm, ...] = get_args(FeedbackForm)
"""What a generator is told of a verdict (SAFE v2, finding 1): all, what is wrong, what to do."""


def _papers_choice() -> Any:
    """A choice that is made as the papers make it, or not."""
    return field(default=False, metadata={AS_PUBLISHED: True})


@dataclass(frozen=True, slots=True)
class Limits:
    """K, N, what happens when N is used up, and what the generator is told of a verdict."""

    max_steps: int = 10
    max_retries: int = 3
    on_exhausted: OnExhausted = "accept"
    feedback: FeedbackForm = "full"
    drop_category: Category | None = None
    """What the verifier's prompt lacks (SAFE v2, Table 4). It need not be said of an adapter, which
    knows what it learnt."""
    prompts: PromptsName | None = None
    """What both roles are asked by. If not said, what models that we trained have learnt, else the paper's."""
    verdict_order: VerdictOrder | None = None
    """What a verdict begins with, likewise."""
    tries_total: bool = _papers_choice()
    """N counts the tries at a step; else those after the first (v1 and v2, section 4.1: "retry
    attempts"; v1, appendix A.8: "max_retries")."""
    accepted_diagnosis: bool = _papers_choice()
    """The diagnosis of a step that passed is told too (v1, Figure 11); else its guidance alone."""
    last_rejected: bool = _papers_choice()
    """Of the rejected tries only the last is shown (v1, Figure 11); else all."""
    answer_when_told: bool = _papers_choice()
    """Once the guidance asks for the answer, so does the prompt (v1, Figures 12 and 13); else only
    that of a generator who is out of steps."""
    search: Search | None = field(default=None, compare=False, repr=False)
    """With it the evidence counts as incomplete."""
    on_attempt: Callable[[Attempt], None] | None = field(default=None, compare=False, repr=False)
    """Told of each attempt as it ends, for who can't wait for the trajectory."""

    def __post_init__(self) -> None:
        if self.max_steps < 1 or self.max_retries < 0:
            raise ValueError("max_steps has to be 1 or more, max_retries 0 or more")
        if self.tries < 1:
            raise ValueError("with tries_total max_retries counts tries: it has to be 1 or more")
        if self.on_exhausted not in get_args(OnExhausted):
            raise ValueError(f"on_exhausted is accept or drop, not {self.on_exhausted!r}")
        if self.feedback not in FEEDBACK_FORMS:
            raise ValueError(f"feedback is one of {', '.join(FEEDBACK_FORMS)}")
        if self.drop_category not in (None, *DROPPABLE):
            raise ValueError(f"drop_category is one of {', '.join(DROPPABLE)}")
        _ = self.prompt_set  # raises as it does

    @property
    def prompt_set(self) -> PromptSet:
        """The prompts of both roles."""
        return PromptSet.from_choices(self.prompts, self.verdict_order)

    @property
    def tries(self) -> int:
        """The most tries at a step."""
        return self.max_retries + (not self.tries_total)


DEFAULT = Limits()
"""The paper's K and N."""


def retries_of(options: Mapping[str, Any]) -> int:
    """The tries at a step after the first, at most, by the options of a record.

    >>> retries_of({"max_retries": 3}), retries_of({"max_retries": 3, "tries_total": True})
    (3, 2)
    """
    return int(options.get("max_retries", 0)) - bool(options.get("tries_total"))
