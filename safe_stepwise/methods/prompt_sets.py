"""Which prompts the loop's two roles are asked by: those of the paper's length, or compact ones.

A set is named in a recipe, told in an adapter's record, and part of a run's options; rows and loop
are rendered by the same functions (`generator.generator_request`, `verifier.verifier_request`).
"""

from dataclasses import dataclass
from typing import Literal, get_args

from safe_stepwise.records import LABEL_FIRST, VERDICT_ORDERS, VerdictOrder

PromptsName = Literal["paper", "compact"]
"""``compact``: at most forty words of instructions, for models that learn the task from rows."""
PROMPTS: tuple[PromptsName, ...] = get_args(PromptsName)

# Whole names: stored work is void once one of these files changes (`store.code`).
_GENERATE = {"paper": "loop/generate", "compact": "compact/generate"}
_FINAL_ANSWER = {"paper": "loop/final_answer", "compact": "compact/final_answer"}
_VERIFY = {"paper": "loop/verify", "compact": "compact/verify"}
_EVIDENCE_FIRST = {"paper": "loop/verify_evidence_first", "compact": "compact/verify_evidence_first"}


@dataclass(frozen=True, slots=True)
class PromptSet:
    """The prompts of generator and verifier, and what the verdict they ask for begins with."""

    name: PromptsName = "paper"
    verdict_order: VerdictOrder = LABEL_FIRST

    def __post_init__(self) -> None:
        if self.name not in PROMPTS:
            raise ValueError(f"prompts is one of {', '.join(PROMPTS)}, not {self.name!r}")
        if self.verdict_order not in VERDICT_ORDERS:
            orders = ", ".join(VERDICT_ORDERS)
            raise ValueError(f"verdict_order is one of {orders}, not {self.verdict_order!r}")

    @classmethod
    def from_choices(cls, name: PromptsName | None, order: VerdictOrder | None) -> "PromptSet":
        """Build a set from two choices; a choice of None is the paper's.

        >>> PromptSet.from_choices("compact", None).verify
        'compact/verify'
        """
        return cls(name or PAPER.name, order or PAPER.verdict_order)

    @property
    def generate(self) -> str:
        """The file of the prompt for a step."""
        return _GENERATE[self.name]

    @property
    def final_answer(self) -> str:
        """The file of the prompt for the answer once the steps are used up."""
        return _FINAL_ANSWER[self.name]

    @property
    def verify(self) -> str:
        """The file of the prompt for a verdict; with its instructions if the label comes first."""
        return _VERIFY[self.name]

    @property
    def instruct(self) -> str:
        """The file of the verifier's instructions."""
        return self.verify if self.verdict_order == LABEL_FIRST else _EVIDENCE_FIRST[self.name]

    @property
    def verifying(self) -> tuple[str, ...]:
        """All files of the verifier's prompt."""
        return tuple(dict.fromkeys((self.verify, self.instruct)))

    @property
    def plain(self) -> dict[str, str]:
        """The choices that differ from the paper's, for records; none where it is kept.

        >>> PromptSet().plain, PromptSet("compact").plain
        ({}, {'prompts': 'compact'})
        """
        choices = {"prompts": self.name, "verdict_order": self.verdict_order}
        defaults = ("paper", LABEL_FIRST)
        return {key: value for (key, value), n in zip(choices.items(), defaults, strict=True) if value != n}


PAPER = PromptSet()
"""SAFE's (v1, Figures 11 to 13) in our words, the label first."""
