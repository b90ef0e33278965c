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


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any] | None:
    """The measures of one system's outcomes as one object; None where none has any.

    Shares and scores are 0-1, means over the questions that have them. ``failures`` are shares of
    all questions; a question has one at most, or its requests ``failed``. All but hallucinations,
    whose answers are right, are wrong by exact match, and the wrong ones are these.
    """
    found = [outcome.measures for outcome in outcomes if outcome.measures]
    if not found:
        return None
    size = len(found)
    strict = {name: sum(getattr(o, name) for o in outcomes if o.measures) / size
              for name in ("exact_match", "f1")}  # fmt: skip
    failures = Counter(one["failure"] for one in found if "failure" in one)
    failures[FAILED] = sum(o.trajectory.stop_reason == FAILED for o in outcomes if o.measures)
    return {
        "questions": size,
        "strict": strict,
        "salvaged": _means([one["salvaged"] for one in found], ("exact_match", "f1")),
        "format": _formats(found),
        **{name: _means([one[name] for one in found if name in one], _SCORES) for name in PARTS},
        "sub_answers": _sub_answers([one["sub_answers"] for one in found if "sub_answers" in one]),
        "derivations": _means(
            [one["derivations"] for one in found if "derivations" in one], ("passages", "triples")
        ),
        "failures": {name: {"questions": failures[name], "rate": failures[name] / size}
                     for name in REASONS},
    }  # fmt: skip


def _means(found: Sequence[Mapping[str, float]], names: Sequence[str]) -> dict[str, Any] | None:
    if not found:
        return None
    means = {name: sum(one[name] for one in found) / len(found) for name in names}
    return {"questions": len(found), **means}


def _formats(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Replies by how they could be read, and the shares of it."""
    counts = {form: sum(one["format"][form] for one in found) for form in FORMS}
    replies = sum(counts.values())
    shares = {form: count / replies if replies else None for form, count in counts.items()}
    return {"replies": replies, "counts": counts, "shares": shares}


def _sub_answers(found: Sequence[Mapping[str, int]]) -> dict[str, Any] | None:
    """Counts, and over all hops alike the shares that were found, right, and located."""
    if not found:
        return None
    names = ("gold", "found", "right", "gold_passages", "located")
    counts = {name: sum(one[name] for one in found) for name in names}
    shares = {
        "recall": counts["right"] / max(1, counts["gold"]),
        "precision": counts["right"] / max(1, counts["found"]),
        "passage_recall": counts["located"] / max(1, counts["gold_passages"]),
    }
    return {"questions": len(found), **counts, **shares}
