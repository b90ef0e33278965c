"""What the measures of many questions come to, for ``results.json`` and the tables."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from evaluators.outcomes import Outcome
from evaluators.prompting import FAILURES
from safe_stepwise.records import FAILED

FORMS = ("first", "revised", "salvaged", "never")
"""How a reply could be read: at first try, after revision, by salvaging alone, not at all."""
PARTS = ("supporting_facts", "supporting_passages", "evidence", "joint")
REASONS = (*FAILURES, FAILED)
"""Why questions are wrong, or right for the wrong reason; the last: no request was answered."""
_SCORES = ("exact_match", "f1", "precision", "recall")
_COUNTS = ("gold", "found", "right", "gold_passages", "located")


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any] | None:
    """The measures of one system's outcomes as one object; None where none has any.

    Shares and scores are 0-1, means over the questions that have them. ``failures`` are shares of
    all questions; a question has one at most, or its requests ``failed``. All but hallucinations,
    whose answers are right, are wrong by exact match, and the wrong ones are these.
    """
    measured = [outcome for outcome in outcomes if outcome.measures]
    if not measured:
        return None
    size = len(measured)

    def parts(name: str) -> list[Any]:
        return [outcome.measures[name] for outcome in measured if name in outcome.measures]

    failures = Counter(parts("failure"))
    failures[FAILED] = sum(outcome.trajectory.stop_reason == FAILED for outcome in measured)
    return {
        "questions": size,
        "strict": {name: sum(getattr(o, name) for o in measured) / size for name in ("exact_match", "f1")},
        "salvaged": _means(parts("salvaged"), ("exact_match", "f1")),
        "format": _formats(parts("format")),
        **{name: _means(parts(name), _SCORES) for name in PARTS},
        "sub_answers": _sub_answers(parts("sub_answers")),
        "derivations": _means(parts("derivations"), ("passages", "triples")),
        "failures": {name: {"questions": failures[name], "rate": failures[name] / size} for name in REASONS},
    }


def _means(parts: Sequence[Mapping[str, float]], names: Sequence[str]) -> dict[str, Any] | None:
    if not parts:
        return None
    return {"questions": len(parts), **{name: sum(part[name] for part in parts) / len(parts) for name in names}}


def _formats(parts: Sequence[Mapping[str, int]]) -> dict[str, Any]:
    counts = {form: sum(part[form] for part in parts) for form in FORMS}
    replies = sum(counts.values())
    shares = {form: count / replies if replies else None for form, count in counts.items()}
    return {"replies": replies, "counts": counts, "shares": shares}


def _sub_answers(parts: Sequence[Mapping[str, int]]) -> dict[str, Any] | None:
    """Counts, and over all hops alike the shares that were found, right, and located."""
    if not parts:
        return None
    counts = {name: sum(part[name] for part in parts) for name in _COUNTS}
    shares = {
        "recall": counts["right"] / max(1, counts["gold"]),
        "precision": counts["right"] / max(1, counts["found"]),
        "passage_recall": counts["located"] / max(1, counts["gold_passages"]),
    }
    return {"questions": len(parts), **counts, **shares}
