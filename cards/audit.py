"""What people found who judged a sample, as cards tell it: from a file of scores alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]

QUESTIONS: Mapping[str, str] = {
    "label": "the label",
    "type": "the type of noise",
    "explanation": "the explanation",
    "lacks_evidence": "do the passages lack evidence",
    "diagnosis": "the diagnosis",
    "guidance": "the guidance",
}
"""What was asked, by its name in the file."""


@dataclass(frozen=True, slots=True)
class Audit:
    """Scores, as `audit_labels score` wrote them, and the file that holds them."""

    file: str
    sha256: str
    scores: Record

    @property
    def rates(self) -> list[tuple[str, str, Record]]:
        """Question, answer and share of each answer that was given."""
        rates: Mapping[str, Mapping[str, Record]] = self.scores["rates"]
        return [
            (QUESTIONS[question], answer.replace("_", " "), share)
            for question in QUESTIONS
            for answer, share in rates.get(question, {}).items()
            if share["hits"]
        ]

    @property
    def groups(self) -> list[tuple[str, Record]]:
        """Of each benchmark and each label the share that is right, as far as it was judged."""
        return [
            (", ".join(group["names"]), group["rates"]["label"]["right"])
            for groups in self.scores["parts"].values()
            for group in groups
            if "right" in group["rates"].get("label", {})
        ]

    @property
    def named(self) -> list[tuple[str, Record]]:
        """The shares that have a name, of those for which there are rows."""
        fault, sound = NAMES[self.scores["of"]]
        shares = (
            (f"called {fault}, and the label is wrong", "false_alarms"),
            (f"called {sound}, and the label is wrong", "missed"),
            (f"rightly called {fault}, and the passages lack evidence", "lacks_evidence"),
        )
        return [(words, self.scores[n]) for words, n in shares if self.scores[n]]

    @property
    def pairs(self) -> list[tuple[str, str, Record]]:
        """Two reviewers by number, what they were asked, and how far they agree on it."""
        numbers = {name: n for n, name in enumerate(self.scores["reviewers"], 1)}
        return [
            (f"{numbers[pair['one']]} and {numbers[pair['other']]}", QUESTIONS[pair["question"]], pair)
            for pair in self.scores["agreement"]
        ]


NAMES: Mapping[str, tuple[str, str]] = {"labels": ("noise", "sound"), "steps": ("an error", "Correct")}
"""What rows with and without a fault are called."""
