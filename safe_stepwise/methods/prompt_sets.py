"""Prompt sets: which prompt files the loop's generator and verifier use, those of the paper's length or compact ones.

A recipe names a set, an adapter's training record keeps it, and a run's options have it. Training rows and the loop
render prompts with the same functions (`generator.generator_request`, `verifier.verifier_request`).
"""

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

# Whole names: stored work is void once one of these files changes (`store.code`).
_GENERATE = {"paper": "loop/generate", "compact": "compact/generate"}
_FINAL_ANSWER = {"paper": "loop/final_answer", "compact": "compact/final_answer"}
_VERIFY = {"paper": "loop/verify", "compact": "compact/verify"}
_VERIFY_BY_NEED = {"paper": "loop/verify_by_need", "compact": "compact/verify_by_need"}
_EVIDENCE_FIRST = {"paper": "loop/verify_evidence_first", "compact": "compact/verify_evidence_first"}


@dataclass(frozen=True, slots=True)
class PromptSet:
    """The prompts of generator and verifier, what a verdict begins with, and which passages a verifier reads."""

    name: PromptsName = "paper"
    verdict_order: VerdictOrder = LABEL_FIRST
    verifier_evidence: EvidenceChoice = ALL

    def __post_init__(self) -> None:
        if self.name not in PROMPTS:
            raise ValueError(f"prompts is one of {', '.join(PROMPTS)}, not {self.name!r}")
        if self.verdict_order not in VERDICT_ORDERS:
            orders = ", ".join(VERDICT_ORDERS)
            raise ValueError(f"verdict_order is one of {orders}, not {self.verdict_order!r}")
        if self.verifier_evidence not in EVIDENCE_CHOICES:
            choices = ", ".join(EVIDENCE_CHOICES)
            raise ValueError(f"verifier_evidence is one of {choices}, not {self.verifier_evidence!r}")

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
        return _GENERATE[self.name]

    @property
    def final_answer(self) -> str:
        """The name of the prompt file for the final answer when no steps are left."""
        return _FINAL_ANSWER[self.name]

    @property
    def verify(self) -> str:
        """The name of the prompt file of the user's turn for a verdict."""
        return (_VERIFY if self.verifier_evidence == ALL else _VERIFY_BY_NEED)[self.name]

    @property
    def instruct(self) -> str:
        """The name of the prompt file with the verifier's instructions."""
        return (_VERIFY if self.verdict_order == LABEL_FIRST else _EVIDENCE_FIRST)[self.name]

    @property
    def verifying(self) -> tuple[str, ...]:
        """The names of all prompt files of the verifier."""
        return tuple(dict.fromkeys((self.verify, self.instruct)))

    @property
    def plain(self) -> dict[str, str]:
        """The choices that differ from the paper's, by option, for records.

        >>> PromptSet().plain, PromptSet("compact").plain
        ({}, {'prompts': 'compact'})
        """
        choices: dict[str, str] = {
            "prompts": self.name,
            "verdict_order": self.verdict_order,
            "verifier_evidence": self.verifier_evidence,
        }
        return {key: value for key, value in choices.items() if value not in ("paper", LABEL_FIRST, ALL)}


PAPER = PromptSet()
"""SAFE's prompts (v1, Figures 11 to 13) in our words, with the label first."""
