"""What an audit asks of a row: one place for the page, the files and the scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from safe_stepwise.store.names import LABELS, STEPS, Audited
from safe_stepwise.taxonomy import CORRECT, labels

LABEL, TYPE, INSTEAD, LACKS = "label", "type", "instead", "lacks_evidence"
"""Questions that scores know by name."""
RIGHT, WRONG, YES = "right", "wrong", "yes"
SOUND: Mapping[str, str] = {LABELS: "none", STEPS: CORRECT}
"""What a row without a fault is labelled."""
PARTS: Mapping[str, tuple[str, ...]] = {
    LABELS: ("benchmark", "noise_type"),
    STEPS: ("benchmark", "error_type", "origin"),
}
"""What a stratum of a sample is made of; the second part is the row's label."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to a reviewer: its key in a file, its text, and the words of each answer."""

    name: str
    text: str
    answers: Mapping[str, str]
    of_sound: bool = True
    """Whether it is asked of rows without a fault, too."""


def _plain(*answers: str) -> Mapping[str, str]:
    return {answer: answer for answer in answers}


_JUDGED = _plain(RIGHT, WRONG, "debatable")
ASKED: Mapping[str, tuple[Asked, ...]] = {
    LABELS: (
        Asked(LABEL, "Is the label right (noise, or sound)?", _JUDGED),
        Asked(TYPE, "Is the type of noise right?", _plain(RIGHT, WRONG), of_sound=False),
        Asked("explanation", "Is the explanation true?", _plain("true", "false")),
        Asked(LACKS, "Do the passages lack what the question needs?", _plain(YES, "no")),
    ),
    STEPS: (
        Asked(LABEL, "Is the step's label right?", _JUDGED),
        Asked("diagnosis", "Is the diagnosis true?", _plain("true", "false", "debatable")),
        Asked("guidance", "Is the guidance good?", {"good": "good", "reveals": "gives the answer away", "bad": "bad"}),
        Asked(INSTEAD, "Which label instead? (if you like)", _plain(*labels())),
    ),
}


def asked_of(of: Audited, stratum: Sequence[str]) -> tuple[Asked, ...]:
    """What is asked of a row of this stratum.

    >>> [asked.name for asked in asked_of("labels", ("musique", "none"))]
    ['label', 'explanation', 'lacks_evidence']
    """
    is_sound = stratum[1] == SOUND[of]
    return tuple(asked for asked in ASKED[of] if asked.of_sound or not is_sound)
