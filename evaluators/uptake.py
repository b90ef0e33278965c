"""Measure feedback uptake: what became of the steps that were written again after a verifier rejected them.

A *retry* is the attempt that follows a rejected one at the same place. `Uptake` follows from the verdict on it and its
text alone, so it needs no model and no annotations. Where a question's annotations let the graph checker judge, it
says of a mended retry whether it is right (*earned*) or not (*waved through*).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, get_args

from evaluators.outcomes import Outcome
from safe_stepwise.methods import sg_fsm, sg_fsm_safe
from safe_stepwise.methods.loop import MALFORMED, UNREAD, UNSURE
from safe_stepwise.methods.verified import step_of
from safe_stepwise.records import Attempt, Step, Trajectory
from safe_stepwise.taxonomy import CORRECT, ENTRIES

Uptake = Literal["mended", "repeated", "verbatim", "another_fault", "malformed", "undecided"]
"""The verifier accepts the retry, or rejects it: with the same error type in other words; in the words of an attempt
that it rejected here before; with another type. Or the retry is no step, or no readable or sure verdict is on it."""
UPTAKES: tuple[Uptake, ...] = get_args(Uptake)
EARNED, WAVED_THROUGH = "earned", "waved_through"
RETRIES, UPTAKE, MENDED = "retries", "uptake", "mended_labels"
"""The key of the number of retries; the key of all counts in ``results.json``; the measure of an outcome that has the
graph checker's label of each mended retry, in order, "" where it can't tell."""
_WITHOUT_VERDICT: Mapping[str, Uptake] = {MALFORMED: "malformed", UNREAD: "undecided", UNSURE: "undecided"}


@dataclass(frozen=True, slots=True)
class Retry:
    """An attempt at a step that the verifier rejected before, with the label of that rejection."""

    error_type: str
    attempt: Attempt
    place: int
    """The attempt's index in the trajectory."""
    uptake: Uptake


def list_retries(trajectory: Trajectory) -> list[Retry]:
    """Return the retries of a trajectory, in order, those of a guarded machine included."""
    judged = [(place, attempt) for place, attempt in enumerate(trajectory.attempts) if attempt.feedback]
    retries, rejected_texts = list[Retry](), set[str]()
    for (earlier_place, rejected), (place, attempt) in pairwise(judged):
        if not _leads_to(rejected, attempt):
            rejected_texts.clear()
            continue
        rejected_texts.add(_text_at(trajectory, earlier_place))
        error_type = _label(rejected)
        if error_type in ENTRIES:
            is_verbatim = _text_at(trajectory, place) in rejected_texts
            retries.append(Retry(error_type, attempt, place, _classify(error_type, attempt, is_verbatim)))
    return retries


def _label(attempt: Attempt) -> str:
    return attempt.feedback.error_type if attempt.feedback else ""


def _leads_to(rejected: Attempt, attempt: Attempt) -> bool:
    """Whether an attempt replaces a rejected one; a machine's verdict says so by the state that follows."""
    if rejected.next_state:
        return _label(rejected) != CORRECT and rejected.next_state in (sg_fsm.SEARCH, sg_fsm.DECOMPOSE)
    return not rejected.accepted and attempt.number == rejected.number


def _classify(error_type: str, attempt: Attempt, is_verbatim: bool) -> Uptake:
    label = _label(attempt)
    if label == CORRECT:
        return "mended"
    if label in _WITHOUT_VERDICT:
        return _WITHOUT_VERDICT[label]
    return "verbatim" if is_verbatim else "repeated" if label == error_type else "another_fault"


def _text_at(trajectory: Trajectory, place: int) -> str:
    attempt = trajectory.attempts[place]
    return findings_at(trajectory, place)[-1].text if attempt.next_state else step_of(attempt)


def findings_at(trajectory: Trajectory, place: int) -> list[Step]:
    """Return the findings that a machine had when the verdict at a place was asked for, worded as steps."""
    sub_answers = sg_fsm_safe.sub_answers(trajectory.attempts[:place])
    return [sg_fsm_safe.step_of(sub_answer, number) for number, sub_answer in enumerate(sub_answers, 1)]


def count_uptake(outcomes: Sequence[Outcome]) -> dict[str, dict[str, int]]:
    """Count retries by the label of the rejection, in the taxonomy's order, and by uptake; empty without retries."""
    counts: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        for retry, label in label_retries(outcome.trajectory, outcome.measures):
            row = counts.setdefault(retry.error_type, Counter())
            row.update((RETRIES, retry.uptake, *([EARNED if label == CORRECT else WAVED_THROUGH] if label else [])))
    keys = (RETRIES, *UPTAKES, EARNED, WAVED_THROUGH)
    return {name: {key: counts[name][key] for key in keys} for name in ENTRIES if name in counts}


def label_retries(trajectory: Trajectory, measures: Mapping[str, Any]) -> list[tuple[Retry, str]]:
    """Return the retries, each with the graph checker's label if it is mended and the checker can tell, else ""."""
    labels = iter(measures.get(MENDED, ()))
    retries = list_retries(trajectory)
    return [(retry, next(labels, "") if retry.uptake == "mended" else "") for retry in retries]


def describe_retries(trajectory: Trajectory, measures: Mapping[str, Any]) -> dict[int, str]:
    """Describe each retry in a word or two, by its index in the trajectory."""
    texts = {}
    for retry, label in label_retries(trajectory, measures):
        judgement = "mended, and right" if label == CORRECT else f"waved through: {label}"
        texts[retry.place] = judgement if label else retry.uptake.replace("_", " ")
    return texts
