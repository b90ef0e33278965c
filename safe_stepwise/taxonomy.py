"""The labels of a step: ten error types, ``Correct``, and ``Missing Evidence``.

Source: SAFE v1, Table 1 for the types and their categories, its evaluation prompt for the order of the checks. A step
gets one label: the first type of ``check_order`` that applies, else ``Correct``. ``Missing Evidence`` belongs only to
the incomplete-evidence setting (SAFE v2, finding 5). The papers give it no place in the order; here it comes last, as
it is about the passages: a step that itself has a fault is labelled by that fault.
"""

import re
from dataclasses import dataclass
from importlib import resources
from typing import Literal, get_args

from safe_stepwise.records import StepKind
from safe_stepwise.store.packaged import read_yaml

Category = Literal["Procedural", "Attribution", "Logical", "Final Answer", "Correct", "Missing Evidence"]
Comparison = Literal["same", "different", "absent"]
MachineState = Literal["search", "decompose", "stop", "summarize"]
CATEGORIES: tuple[Category, ...] = get_args(Category)
STEP_KINDS: tuple[StepKind, ...] = get_args(StepKind)


@dataclass(frozen=True, slots=True)
class ErrorType:
    """One label, with the kinds of step that can get it."""

    name: str
    category: Category
    definition: str
    step_kinds: tuple[StepKind, ...]
    comparison: Comparison = "same"
    """How the value in such a step compares with its evidence."""
    gives_value: bool = True
    """Whether such a step gives a value."""
    next_state: MachineState | None = None
    """The state that a state machine enters after a step with this label; None: it continues."""
    decided_by_passages: bool = False
    """Whether only the passages distinguish attribution steps with this label from those of other such labels."""

    @property
    def is_contradiction(self) -> bool:
        """Whether a passage proves such a step wrong by another value."""
        return self.category == "Attribution" and self.gives_value and self.comparison == "different"


CORRECT = "Correct"
MISSING_EVIDENCE = "Missing Evidence"

TAXONOMY = tuple(
    ErrorType(**{**entry, "step_kinds": tuple(entry["step_kinds"])})
    for entry in read_yaml(resources.files("safe_stepwise").joinpath("taxonomy.yaml"))
)
ERROR_TYPES = tuple(e for e in TAXONOMY if e.name not in (CORRECT, MISSING_EVIDENCE))
DROPPABLE: tuple[Category, ...] = tuple(dict.fromkeys(e.category for e in ERROR_TYPES))
"""The categories that an ablation may leave out."""
_DECIDED = sorted(
    (e for e in TAXONOMY if e.decided_by_passages),
    key=lambda e: (e.category != "Correct", e.category != "Attribution"),
)
EVIDENCE_LABELS = tuple(e.name for e in _DECIDED)
"""Labels of attribution steps that only the passages distinguish."""
ENTRIES = {entry.name: entry for entry in TAXONOMY}

# Without "!", "?", "~" and "¬": before a label they negate it, around it they strike it out or doubt it.
_SURROUNDING = " \t\r\n\"'`“”‘’«»„*_#.,:;()[]{}<>"
_JOINERS = re.compile(r"[\s_\-\u2010-\u2015\u2212]+")


def labels(incomplete_evidence: bool = False, dropped: Category | None = None) -> tuple[str, ...]:
    """Return the labels of a setting: eleven names, or twelve with ``Missing Evidence``.

    The labels of a ``dropped`` category, one of `DROPPABLE`, are left out (SAFE v2, Table 4).

    >>> len(labels()), len(labels(incomplete_evidence=True)), len(labels(dropped="Procedural"))
    (11, 12, 7)
    """
    return tuple(
        e.name for e in TAXONOMY if (incomplete_evidence or e.name != MISSING_EVIDENCE) and e.category != dropped
    )


def check_order(kind: StepKind, incomplete_evidence: bool = False) -> tuple[str, ...]:
    """Return the error types to check a step of this kind for, in order; if none applies, it is ``Correct``.

    Raises ValueError for an unknown kind.

    >>> check_order("Logical")
    ('Overthinking', 'Off-topic', 'Redundancy', 'Inefficiency', 'Logical Fallacy')
    """
    if kind not in STEP_KINDS:
        raise ValueError(f"unknown step kind {kind!r}; known: {', '.join(STEP_KINDS)}")
    allowed = labels(incomplete_evidence)
    return tuple(e.name for e in TAXONOMY if kind in e.step_kinds and e.name in allowed and e.name != CORRECT)


def category(error_type: str) -> Category:
    """Return a label's category; ``Correct`` is its own. Raises ValueError for all but the twelve exact names.

    >>> category("Information Miss")
    'Attribution'
    """
    if error_type not in ENTRIES:
        raise ValueError(f"unknown error type {error_type!r}; known: {', '.join(ENTRIES)}")
    return ENTRIES[error_type].category


def spelling(text: str) -> str:
    """Reduce a name to its letters: without case, joiners, quotes and markdown.

    >>> spelling("**Off_Topic**.")
    'offtopic'
    """
    # "!" is safe after a label ("Correct!"), but not before it ("!Correct").
    return _JOINERS.sub("", text.lstrip(_SURROUNDING).rstrip(_SURROUNDING + "!")).casefold()


# The second spelling of Correct is the one in the paper's evaluation prompt.
_LABEL_OF = {spelling(name): name for name in ENTRIES} | {spelling("Correct (No Error)"): CORRECT}


def normalize_label(text: str) -> str | None:
    """Return the label that a whole text spells, or None. A label inside other words does not count.

    >>> normalize_label("off topic"), normalize_label('"PREMATURE-attribution"')
    ('Off-topic', 'Premature Attribution')
    >>> normalize_label("Incorrect") is None and normalize_label("not Correct") is None
    True
    """
    return _LABEL_OF.get(spelling(text))
