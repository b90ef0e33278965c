"""Explains whether an answer of the loop is verified, and if not, why.

It is verified if a verdict passed each step that was accepted, the answer's own included. Nothing
else counts: neither a step that was accepted as its retries were used up, nor one on which no
verdict could be read, nor an answer that had to be asked for.
"""

from safe_stepwise.methods.loop import FINAL_ANSWER, SCORED, UNREAD, read_answer, read_reply
from safe_stepwise.records import FAILED, Attempt, Sample, Trajectory
from safe_stepwise.steps import StepError, format_step
from safe_stepwise.taxonomy import CORRECT

MAX_REASON_CHARACTERS = 600
"""Maximum characters that are shown of a reply that is not a step."""


def doubts(trajectory: Trajectory | Sample) -> tuple[str, ...]:
    """Return the reasons why an answer is not verified, one clause each; none if it is verified."""
    attempts = [attempt for attempt in trajectory.attempts if attempt.state != SCORED]
    accepted = [attempt for attempt in attempts if attempt.accepted]
    reasons = [f"step {attempt.number}: {reason}" for attempt in accepted if (reason := doubt(attempt))]
    if accepted and all(attempt.feedback is None for attempt in attempts):
        reasons = ["no step was seen by a verifier"]
    if trajectory.stop_reason == FAILED:
        reasons.append(f"a request failed ({trajectory.failure})")
    elif not trajectory.answer:
        reasons.append("no answer was reached")
    return tuple(reasons)


def doubt(attempt: Attempt) -> str:
    """Explain in a clause why an accepted attempt is not verified; "" if it is."""
    if (verdict := attempt.feedback) is None:
        is_final_call = attempt.state == FINAL_ANSWER
        return "asked for when the steps were used up, unseen by a verifier" if is_final_call else "unseen"
    if verdict.error_type == UNREAD:
        return "accepted though no verdict on it could be read"
    return "" if verdict.error_type == CORRECT else f"accepted though found {verdict.error_type}"


def step_of(attempt: Attempt) -> str:
    """Return an attempt's step in its normal form; the start of the reply if it has no step.

    >>> step_of(Attempt(2, "Step 7: Oru lies on the Vel. (Logical)", None, True))
    'Step 2: Oru lies on the Vel. (Logical)'
    """
    try:
        return format_step(read_reply(attempt.text, attempt.number))
    except StepError:
        answer = read_answer(attempt.text, attempt.number)
    cut = f"{attempt.text[:MAX_REASON_CHARACTERS]}…" if len(attempt.text) > MAX_REASON_CHARACTERS else attempt.text
    return format_step(answer) if answer else f"No step: {' '.join(cut.split())}"


def fate_of(attempt: Attempt) -> str:
    """Explain in one line whether an attempt was accepted, and why."""
    verdict = attempt.feedback
    score = f" (score {verdict.score:.2f})" if verdict and verdict.score is not None else ""
    diagnosis = f"{score}: {' '.join(verdict.diagnosis.split())}" if verdict and verdict.diagnosis.strip() else score
    if attempt.accepted:
        reason = doubt(attempt)
        return f"NOT VERIFIED, {reason}{diagnosis}" if reason else f"verified{diagnosis}"
    if verdict is None:
        return "no verdict came" if attempt.state != FINAL_ANSWER else "holds no answer"
    return f"rejected, {verdict.error_type}{diagnosis}"
