"""A verifier's rows: what an ablation leaves of a verdict, and what none may be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from safe_stepwise.feedback import parse_feedback
from trainers.rows.base import BadRow
from trainers.rows.verifier import VERIFIER, with_feedback

VERDICT = '{"error_type": "Redundancy", "diagnosis": "Said in Step 1.", "guidance": "Go on."}'
ROW: dict[str, Any] = {
    "id": "r1",
    "prompt": [{"role": "user", "content": "Judge."}],
    "completion": [{"role": "assistant", "content": VERDICT}],
}


def test_an_ablated_verdict_is_still_one() -> None:
    full = parse_feedback(VERDICT)
    diagnosis = parse_feedback(with_feedback(ROW, "diagnosis")["completion"][0]["content"])
    assert (diagnosis.error_type, diagnosis.diagnosis) == (full.error_type, full.diagnosis)
    assert full.guidance not in diagnosis.guidance
    guidance = parse_feedback(with_feedback(ROW, "guidance")["completion"][0]["content"])
    assert (guidance.diagnosis, guidance.guidance) == ("", full.guidance)
    assert with_feedback(ROW, "full") == ROW


def test_a_completion_has_to_be_a_whole_verdict() -> None:
    VERIFIER.check(VERDICT)
    asking = {"error_type": "Missing Evidence", "guidance": "Look it up.", "query": "Oru"}
    VERIFIER.check(json.dumps(asking | {"diagnosis": "No passage says so."}))
    for cut in range(1, len(VERDICT) - 1, 9):
        with pytest.raises(BadRow, match="is no verdict, or is cut short"):
            VERIFIER.check(VERDICT[:cut])
