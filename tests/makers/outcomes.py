"""Outcomes for tests, of scores alone or of trajectories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from evaluators.outcomes import Outcome, Verdict
from safe_stepwise.records import Attempt, Feedback, Trajectory, Usage

VERIFIERS = {"safe": "checker"}


def outcome(
    question: str,
    method: str = "safe",
    score: float = 1.0,
    *,
    generator: str = "model",
    verifier: str = "",
    max_steps: int = 10,
    max_retries: int = 3,
    **changes: Any,
) -> Outcome:
    """A question that was answered rightly (1) or wrongly (0), by all three measures."""
    verdict: Verdict = "correct" if score else "incorrect"
    verifier = verifier or VERIFIERS.get(method, "")
    fields: dict[str, Any] = {
        "benchmark": "musique",
        "method": method,
        "players": {"generator": generator, **({"verifier": verifier} if verifier else {})},
        "options": {"max_steps": max_steps, "max_retries": max_retries},
        "question_id": question,
        "exact_match": score,
        "f1": score,
        "verdict": verdict,
        "trajectory": Trajectory(question, method, (), (), "x", "answered"),
        "simulated": False,
    }
    return Outcome(**(fields | changes))


def outcomes(scores: Sequence[float], method: str = "safe", **changes: Any) -> list[Outcome]:
    """One outcome a score, for the questions q0, q1, ..."""
    return [outcome(f"q{n}", method, score, **changes) for n, score in enumerate(scores)]


def trajectory(question: str, method: str, errors: Iterable[tuple[int, str]]) -> Trajectory:
    """Two steps, before which the verifier found those errors (step, type)."""
    usage = Usage(100, 60, 10)
    both = {"generator": usage, "verifier": Usage(200, 180, 20)}
    found = [*errors, (1, "Correct"), (2, "Correct")]
    if method == "no_verification":
        attempts = tuple(Attempt(n, "x", None, True, {"generator": usage}) for n in (1, 2))
    else:
        attempts = tuple(
            Attempt(n, "x", Feedback(error, "d", "g"), error == "Correct", both)
            for n, error in sorted(found, key=lambda item: item[0])
        )
    return Trajectory(question, method, (), attempts, "x", "answered")
