"""Prompt sets: which prompt files the loop's generator and verifier use, those of the paper's length or compact ones.

A recipe names a set, an adapter's training record keeps it, and a run's options have it. Training rows and the loop
render prompts with the same functions (`generator.generator_request`, `verifier.verifier_request`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from safe_stepwise.records import LABEL_FIRST, VERDICT_ORDERS, VerdictOrder

PromptsName = Literal["paper", "compact"]
"""``compact``: at most forty words of instructions, for models that learn the task in training."""
PROMPTS: tuple[PromptsName, ...] = get_args(PromptsName)

EvidenceChoice = Literal["all", "cited", "retrieved"]
"""The passages in a verifier's prompt: all, or those that `passage_choice` finds for each step."""
EVIDENCE_CHOICES: tuple[EvidenceChoice, ...] = get_args(EvidenceChoice)
ALL, CITED = EVIDENCE_CHOICES[:2]

CHOICES: Mapping[str, Sequence[str]] = {
    "prompts": PROMPTS,
    "verdict_order": VERDICT_ORDERS,
    "verifier_evidence": EVIDENCE_CHOICES,
}
"""The choices of a `PromptSet` by option; the first of each is the paper's."""

_FOLDERS: Mapping[PromptsName, str] = {"paper": "loop/", "compact": "compact/"}
"""The folder of a set's files. By its slash `store.code` knows it, so that stored work is void once a file changes."""


@dataclass(frozen=True, slots=True)
class PromptSet:
    """The prompts of generator and verifier, what a verdict begins with, and which passages a verifier reads."""

    name: PromptsName = "paper"
    verdict_order: VerdictOrder = LABEL_FIRST
    verifier_evidence: EvidenceChoice = ALL

    def __post_init__(self) -> None:
        for option, choice in self.choices.items():
            if choice not in CHOICES[option]:
                raise ValueError(f"{option} is one of {', '.join(CHOICES[option])}, not {choice!r}")

    @classmethod
    def from_choices(
        cls, name: PromptsName | None, order: VerdictOrder | None, evidence: EvidenceChoice | None = None
    ) -> "PromptSet":
        """Build a set from choices; None means the paper's.

        >>> PromptSet.from_choices("compact", None).verify
        'compact/verify'
        """
        return cls(name or PAPER.name, order or PAPER.verdict_order, evidence or ALL)

    @property
    def generate(self) -> str:
        """The name of the prompt file for a step."""
        return f"{_FOLDERS[self.name]}generate"

    @property
    def final_answer(self) -> str:
        """The name of the prompt file for the final answer when no steps are left."""
        return f"{_FOLDERS[self.name]}final_answer"

    @property
    def verify(self) -> str:
        """The name of the prompt file of the user's turn for a verdict."""
        return f"{_FOLDERS[self.name]}{'verify' if self.verifier_evidence == ALL else 'verify_by_need'}"

    @property
    def instruct(self) -> str:
        """The name of the prompt file with the verifier's instructions."""
        return f"{_FOLDERS[self.name]}{'verify' if self.verdict_order == LABEL_FIRST else 'verify_evidence_first'}"

    @property
    def verifying(self) -> tuple[str, ...]:
        """The names of all prompt files of the verifier."""
        return tuple(dict.fromkeys((self.verify, self.instruct)))

    @property
    def choices(self) -> dict[str, str]:
        """The choices by option."""
        return dict(zip(CHOICES, (self.name, self.verdict_order, self.verifier_evidence), strict=True))

    @property
    def plain(self) -> dict[str, str]:
        """The choices that differ from the paper's, by option, for records.

        >>> PromptSet().plain, PromptSet("compact").plain
        ({}, {'prompts': 'compact'})
        """
        return {option: choice for option, choice in self.choices.items() if choice != CHOICES[option][0]}


PAPER = PromptSet()
"""SAFE's prompts (v1, Figures 11 to 13) in our words, with the label first."""
