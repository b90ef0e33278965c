"""Trajectories as they were written down, those of older versions, too."""

from collections.abc import Mapping
from typing import Any

from safe_stepwise.methods.loop import FINAL_ANSWER, GENERATOR, MALFORMED, OUT_OF_STEPS, VERIFIER
from safe_stepwise.records import Attempt, Feedback, Step, Trajectory, Usage
from safe_stepwise.store import boundary
from safe_stepwise.store.codec import passage_of

NO_LINE = (ValueError, TypeError, KeyError, AttributeError)
"""What a line raises that holds something else than it should."""


def trajectory_of(content: Mapping[str, Any]) -> Trajectory:
    """A trajectory from its JSON object; one of `NO_LINE` for an object that is none."""
    attempts, asked = content["attempts"], content["stop_reason"] == OUT_OF_STEPS
    found = Trajectory(
        **{
            **content,
            "steps": tuple(Step(**step) for step in content["steps"]),
            "attempts": tuple(
                _attempt(attempt, is_last_call=asked and n == len(attempts)) for n, attempt in enumerate(attempts, 1)
            ),
        }
    )
    return boundary.read(Trajectory, found, "the trajectory")


def _attempt(content: Mapping[str, Any], *, is_last_call: bool) -> Attempt:
    said, known = content["feedback"], dict(content)
    if "usage" not in known:  # of before: two fixed roles
        verified = said is not None and said["error_type"] != MALFORMED
        usage = {GENERATOR: known.pop("generator_usage"), VERIFIER: known.pop("verifier_usage")}
        known["usage"] = usage if verified else {GENERATOR: usage[GENERATOR]}
        known["state"] = FINAL_ANSWER if is_last_call else ""
    return Attempt(
        **{
            **known,
            "feedback": None if said is None else Feedback(**said),
            "usage": {role: Usage(**used) for role, used in known["usage"].items()},
            "retrieved": tuple(map(passage_of, content["retrieved"])),
        }
    )
