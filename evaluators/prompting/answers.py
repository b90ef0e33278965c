"""What a prompting method's trajectory says: the answer, and what it says that it rests on.

SG-FSM's machines say what they found hop by hop; with evidence (its Setting 2) every method names
supporting facts and triples, SG-FSM1 those of its finds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from safe_stepwise.methods.asking import ANSWERING, salvaged_answer, voted
from safe_stepwise.methods.scene import Found
from safe_stepwise.methods.sg_fsm import DECOMPOSE, REVISED_IN, SEARCH, TERMINATE
from safe_stepwise.methods.sg_fsm_safe import FIND
from safe_stepwise.records import ANSWERED, Attempt, Trajectory

OVERTHINKING = "Overthinking"
"""A find that is not needed is left out, if there are others."""
FACTS, TRIPLES = "supporting_facts", "evidences"
"""Fields of a reply with evidence."""


@dataclass(frozen=True, slots=True)
class Said:
    """What stands behind an answer.

    ``facts`` (passage from 1, sentence from 0) and ``triples`` are None where nobody asked for
    them; ``passages`` are None where the method never says where anything stands.
    """

    answer: str
    salvaged: str
    found: tuple[Found, ...]
    facts: tuple[tuple[int, int], ...] | None
    triples: tuple[tuple[str, str, str], ...] | None
    passages: frozenset[int] | None
    is_hop_by_hop: bool
    """Whether it says what it found on its way."""


def said(trajectory: Trajectory, evidence: bool) -> Said:
    """What a trajectory says; ``evidence``: whether facts and triples were asked for.

    What was withdrawn, or could not be read, rests on nothing.
    """
    found, last = finds(trajectory.attempts), _last(trajectory.attempts)
    facts: Sequence[Sequence[int]] | None = None
    triples: Sequence[Sequence[str]] | None = None
    if evidence:
        facts = last.get(FACTS, [(one.passage, n) for one in found for n in one.sentences])
        triples = last.get(TRIPLES, [one.evidence for one in found if one.evidence])
        if trajectory.stop_reason != ANSWERED:
            facts = triples = ()
    cited = {one.passage for one in found} | {page for page, _ in facts or ()}
    is_hop_by_hop = any(attempt.state == DECOMPOSE for attempt in trajectory.attempts)
    return Said(
        trajectory.answer,
        salvaged_answer(trajectory),
        found,
        None if facts is None else tuple((page, sentence) for page, sentence in facts),
        None if triples is None else tuple((h, r, t) for h, r, t in triples),
        frozenset(cited) if evidence or is_hop_by_hop else None,
        is_hop_by_hop,
    )


def _last(attempts: Sequence[Attempt]) -> Mapping[str, Any]:
    """The fields of the reply that the answer and its evidence stand in, as far as one has any."""
    if any(attempt.state == ANSWERING for attempt in attempts):
        return voted(attempts)
    values = [_strict(attempt) for attempt in attempts]
    return next((value for value in reversed(values) if FACTS in value), {})


def finds(attempts: Sequence[Attempt]) -> tuple[Found, ...]:
    """What a machine found and did not take back, in its order; other methods find nothing."""
    found: list[Found] = []
    asked = current = ""
    for attempt in attempts:
        value = _strict(attempt)
        if attempt.state == FIND:
            if _is_taken_back(attempt, found):
                found.pop()
        elif not value:
            continue
        elif attempt.state in _either(DECOMPOSE):
            asked = current if value["simple"] else str(value["subquestion"])
        elif attempt.state in _either(SEARCH):
            found.append(_find(asked or str(value["question"]), value))
        elif attempt.state in _either(TERMINATE):
            current = str(value["question"] or current)
    return tuple(found)


def _is_taken_back(attempt: Attempt, found: Sequence[Found]) -> bool:
    """Whether what was found last was given up, by a verdict or for want of one."""
    label = attempt.feedback.error_type if attempt.feedback else ""
    if label == OVERTHINKING:
        return len(found) > 1
    return attempt.next_state in (SEARCH, DECOMPOSE) and bool(found)


def _find(asked: str, value: Mapping[str, Any]) -> Found:
    sentences, triple = value.get("sentences", ()), value.get("evidence", ())
    return Found(asked, value["passage"], value["answer"], tuple(sentences), tuple(triple))


def _strict(attempt: Attempt) -> Mapping[str, Any]:
    """The fields that were read in a reply that could be read strictly."""
    read = attempt.read
    is_strict = isinstance(read, dict) and read.get("form") == "strict"
    return read["value"] if is_strict else {}


def _either(state: str) -> tuple[str, str]:
    """A state, and the one that puts its replies right."""
    return state, REVISED_IN[state]
