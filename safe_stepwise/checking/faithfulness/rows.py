"""A verdict as JSON has it."""

from typing import Any

from safe_stepwise.checking.faithfulness.chains import ChainVerdict
from safe_stepwise.records import Triple

_DIGITS = 4


def verdict_row(verdict: ChainVerdict) -> dict[str, Any]:
    """A verdict without its rule's name; triples are lists of three, scores have four digits.

    >>> verdict_row(ChainVerdict("house", "faithful", True, edits=0, distance=0.0))["path"]
    'faithful'
    """
    return {
        "path": verdict.path,
        "is_right": verdict.is_right,
        "fault": verdict.fault,
        "first": verdict.first,
        "edits": verdict.edits,
        "distance": _short(verdict.distance),
        "missing": [_plain(triple) for triple in verdict.missing],
        "steps": [
            {"triples": [_plain(triple) for triple in step.triples], "fault": step.fault, "score": _short(step.score)}
            for step in verdict.steps
        ],
    }


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)


def _plain(triple: Triple) -> list[str]:
    return [triple.head, triple.relation, triple.tail]
