"""Defines the loop's options: limits, rules, and where to follow the papers instead of our choice.

Where the papers differ from us, or from each other, ours is the default. Such an option has the papers' choice in its
metadata. A run that keeps our default does not record it, so that its identity stays the same."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from safe_stepwise.methods.prompt_sets import EvidenceChoice, PromptSet, PromptsName
from safe_stepwise.records import Attempt, Passage, VerdictOrder
from safe_stepwise.taxonomy import DROPPABLE, Category

AS_PUBLISHED = "as published"
"""Key of an option's metadata: the papers' value, if it differs from ours."""
Search = Callable[[str], Sequence[Passage]]
"""Maps a query to passages, the best first; a method takes as many as it needs."""
OnExhausted = Literal["accept", "drop"]
FeedbackForm = Literal["full", "diagnosis", "guidance"]
FEEDBACK_FORMS: tuple[FeedbackForm, ...] = get_args(FeedbackForm)
"""The parts of a verdict that the generator is shown (SAFE v2, finding 1): all, the diagnosis, or the guidance."""


def _papers_choice() -> Any:
    """Declare an option that is False by default and True in the papers."""
    return field(default=False, metadata={AS_PUBLISHED: True})


@dataclass(frozen=True, slots=True)
class Limits:
    """The options of the loop: ``max_steps`` is the papers' K, ``max_retries`` their N."""

    max_steps: int = 10
    max_retries: int = 3
    on_exhausted: OnExhausted = "accept"
    feedback: FeedbackForm = "full"
    drop_category: Category | None = None
    """The error category that the verifier's prompt lacks (SAFE v2, Table 4); None: the one that its adapter lacks."""
    prompts: PromptsName | None = None
    """The prompts of both roles; None: those that the models were trained with, else the paper's."""
    verdict_order: VerdictOrder | None = None
    """The part with which a verdict begins; None: as the models were trained, else the label."""
    verifier_evidence: EvidenceChoice | None = None
    """The passages in the verifier's prompts; None: as it was trained, else all."""
    scores: bool | None = None
    """Whether verdicts have a score, the verifier's probability of Correct, if its engine tells log-probabilities."""
    accept_above: float | None = None
    """The score (0-1) that a step called Correct must have to be accepted; None: none."""
    tries_total: bool = _papers_choice()
    """Whether N counts all attempts at a step; else those after the first (v1 and v2, section 4.1: "retry attempts";
    v1, appendix A.8: "max_retries")."""
    accepted_diagnosis: bool = _papers_choice()
    """Whether the diagnosis of an accepted step is shown, too (v1, Figure 11); else only its guidance."""
    last_rejected: bool = _papers_choice()
    """Whether only the last rejected attempt is shown (v1, Figure 11); else all."""
    answer_when_told: bool = _papers_choice()
    """Whether the prompt asks for the answer as soon as the guidance does (v1, Figures 12 and 13); else only when the
    steps are used up."""
    search: Search | None = field(default=None, compare=False, repr=False)
    """The search of a corpus; with it, the evidence counts as incomplete."""
    on_attempt: Callable[[Attempt], None] | None = field(default=None, compare=False, repr=False)
    """Called with each attempt as it ends, before the trajectory is complete."""

    def __post_init__(self) -> None:
        if self.max_steps < 1 or self.max_retries < 0:
            raise ValueError("max_steps has to be 1 or more, max_retries 0 or more")
        if self.tries < 1:
            raise ValueError("with tries_total max_retries counts tries: it has to be 1 or more")
        if self.drop_category not in (None, *DROPPABLE):
            raise ValueError(f"drop_category is one of {', '.join(DROPPABLE)}")
        if self.accept_above is not None and not 0 <= self.accept_above <= 1:
            raise ValueError("accept_above is a probability from 0 to 1")
        _ = self.prompt_set  # raises as it does

    @property
    def prompt_set(self) -> PromptSet:
        return PromptSet.from_choices(self.prompts, self.verdict_order, self.verifier_evidence)

    @property
    def tries(self) -> int:
        """The maximum number of attempts at a step."""
        return self.max_retries + (not self.tries_total)


DEFAULT = Limits()
"""The default limits: the paper's K and N."""


def retries_of(options: Mapping[str, Any]) -> int:
    """Return the maximum number of attempts at a step after the first, by the options of a record.

    >>> retries_of({"max_retries": 3}), retries_of({"max_retries": 3, "tries_total": True})
    (3, 2)
    """
    return int(options.get("max_retries", 0)) - bool(options.get("tries_total"))
