"""The labels of a step: ten error types, ``Correct``, and ``Missing Evidence``.

Source: SAFE v1, Table 1 for the types and their categories, its evaluation prompt for the order of
the checks. A step gets one label: the first type of ``check_order`` that applies, else ``Correct``.
``Missing Evidence`` belongs to the incomplete-evidence setting alone (SAFE v2, finding 5). The
papers give it no place in the order; here it comes last, since it speaks of the passages at hand:
a step with a fault of its own is named after that fault.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from safe_stepwise.records import StepKind

Category = Literal[
    "Procedural", "Attribution", "Logical", "Final Answer", "Correct", "Missing Evidence"
]
CATEGORIES: tuple[Category, ...] = get_args(Category)
STEP_KINDS: tuple[StepKind, ...] = get_args(StepKind)


@dataclass(frozen=True, slots=True)
class ErrorType:
    """One label, with the kinds of step that can get it."""

    name: str
    category: Category
    definition: str
    step_kinds: tuple[StepKind, ...]


_BEFORE_THE_END: tuple[StepKind, ...] = ("Attribution", "Logical")

ERROR_TYPES: tuple[ErrorType, ...] = (
    ErrorType(
        "Overthinking",
        "Procedural",
        "The steps already accepted settle the answer, yet the trajectory reads or derives more "
        "instead of stating it.",
        _BEFORE_THE_END,
    ),
    ErrorType(
        "Off-topic",
        "Procedural",
        "The step follows entities or facts that lie on no path between the question and its "
        "answer, however true they are.",
        _BEFORE_THE_END,
    ),
    ErrorType(
        "Redundancy",
        "Procedural",
        "The step states a fact or a deduction that an earlier accepted step has stated already.",
        _BEFORE_THE_END,
    ),
    ErrorType(
        "Inefficiency",
        "Procedural",
        "The step neither reads a fact nor derives one: it plans, announces or sums up.",
        _BEFORE_THE_END,
    ),
    ErrorType(
        "Contradictory",
        "Attribution",
        "A passage says otherwise: the stated entity or relation conflicts with what it asserts.",
        ("Attribution",),
    ),
    ErrorType(
        "Unsupported",
        "Attribution",
        "The stated entity or relation is found nowhere in the evidence that the step may use.",
        ("Attribution",),
    ),
    ErrorType(
        "Information Miss",
        "Attribution",
        "The step passes over, or declares absent, a needed fact that a passage does state.",
        ("Attribution",),
    ),
    ErrorType(
        "Premature Attribution",
        "Attribution",
        "The fact is true, but the hop that ties its entity to the question has not been "
        "established yet.",
        ("Attribution",),
    ),
    ErrorType(
        "Logical Fallacy",
        "Logical",
        "The comparison, calculation or inference does not follow from the steps it rests on.",
        ("Logical",),
    ),
    ErrorType(
        "Wrong Conclusion",
        "Final Answer",
        "The submitted answer is not the one that the accepted steps lead to.",
        ("Final Answer",),
    ),
)

CORRECT = "Correct"
MISSING_EVIDENCE = "Missing Evidence"

TAXONOMY: tuple[ErrorType, ...] = (
    *ERROR_TYPES,
    ErrorType(
        CORRECT,
        "Correct",
        "No error type applies: the step is sound and brings the answer nearer.",
        STEP_KINDS,
    ),
    ErrorType(
        MISSING_EVIDENCE,
        "Missing Evidence",
        "The fact needed next stands in none of the passages at hand and must be searched for.",
        _BEFORE_THE_END,
    ),
)
_BY_NAME = {entry.name: entry for entry in TAXONOMY}

# No "!", "?", "~" or "¬": before a label they negate it, around it they strike it out or doubt it.
_SURROUNDING = " \t\r\n\"'`“”‘’«»„*_#.,:;()[]{}<>"
_JOINERS = re.compile(r"[\s_\-\u2010-\u2015\u2212]+")


def labels(incomplete_evidence: bool = False) -> tuple[str, ...]:
    """The label set of a setting: eleven names, or twelve with ``Missing Evidence``.

    >>> len(labels()), len(labels(incomplete_evidence=True))
    (11, 12)
    """
    return tuple(e.name for e in TAXONOMY if incomplete_evidence or e.name != MISSING_EVIDENCE)


def check_order(kind: StepKind, incomplete_evidence: bool = False) -> tuple[str, ...]:
    """The error types to check a step of this kind for, first to last; none applies: ``Correct``.

    Raises ValueError for an unknown kind.

    >>> check_order("Logical")
    ('Overthinking', 'Off-topic', 'Redundancy', 'Inefficiency', 'Logical Fallacy')
    >>> check_order("Final Answer", incomplete_evidence=True)
    ('Wrong Conclusion',)
    """
    if kind not in STEP_KINDS:
        raise ValueError(f"unknown step kind {kind!r}; known: {', '.join(STEP_KINDS)}")
    allowed = labels(incomplete_evidence)
    return tuple(
        e.name for e in TAXONOMY if kind in e.step_kinds and e.name in allowed and e.name != CORRECT
    )


def category(error_type: str) -> Category:
    """The category of a label, given by its exact name; ``Correct`` is a category of its own.

    Raises ValueError for anything else than one of the twelve names.

    >>> category("Information Miss")
    'Attribution'
    """
    if error_type not in _BY_NAME:
        raise ValueError(f"unknown error type {error_type!r}; known: {', '.join(_BY_NAME)}")
    return _BY_NAME[error_type].category


def spelling(text: str) -> str:
    """What is left of a name when its spelling is set aside: case, joiners, quotes, markdown.

    >>> spelling("**Off_Topic**.")
    'offtopic'
    """
    # "!" is safe behind a label ("Correct!"), never before it ("!Correct").
    plain = text.lstrip(_SURROUNDING).rstrip(_SURROUNDING + "!")
    return _JOINERS.sub("", plain).casefold()


# The second spelling of Correct is the one in the paper's evaluation prompt.
_LABEL_OF = {spelling(name): name for name in _BY_NAME} | {spelling("Correct (No Error)"): CORRECT}


def normalize_label(text: str) -> str | None:
    """The label that ``text`` spells in full, or None. A label inside other words is no label.

    >>> normalize_label("off topic"), normalize_label('"PREMATURE-attribution"')
    ('Off-topic', 'Premature Attribution')
    >>> normalize_label("Incorrect") is None and normalize_label("not Correct") is None
    True
    """
    return _LABEL_OF.get(spelling(text))
