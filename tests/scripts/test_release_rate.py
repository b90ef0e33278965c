"""The rate at which a verifier rejects: of distinct steps, by the loop's own options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluators.outcomes import Outcome
from evaluators.run.options import Options
from releases.manifest import METHOD_OPTIONS
from releases.stages import evaluation
from safe_stepwise.methods.loop import MALFORMED, UNREAD
from safe_stepwise.records import Attempt, Feedback, Trajectory

LABELS = ("Correct", "Contradictory", "Contradictory", UNREAD, "Correct", MALFORMED)
TEXTS = ("a", "b", "b", "c", "d", "no step")
"""The third is the second again, the last is no step at all: two of four steps are rejected."""


def test_a_step_that_is_tried_again_counts_once_and_what_is_no_step_never(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Options] = []

    def evaluate(options: Options, *_: object) -> str:
        asked.append(options)
        attempts = tuple(
            Attempt(1, text, Feedback(label, "", ""), label == "Correct")
            for text, label in zip(TEXTS, LABELS, strict=True)
        )
        trajectory = Trajectory("q", "safe", (), attempts, "", "max_steps")
        made = Outcome("synthetic", "safe", {}, {}, "q", 0.0, 0.0, None, trajectory, False)
        options.output.mkdir(parents=True)
        (options.output / "trajectories.jsonl").write_text(f"{made.to_json()}\n", encoding="utf-8")
        return ""

    options: dict[str, Any] = {
        "questions": "questions",
        "output": tmp_path / "report",
        "report": tmp_path / "report",
        "method": ("no_verification", "safe", "cot", "sg_fsm1"),
        "generator": ("first", "second"),
        "verifier": ("chance:reject={rate}", "judge", "another"),
        "judge": "symbolic",
        "judge_without_question": True,
        **dict.fromkeys(METHOD_OPTIONS, ()),
        "max_retries": (3, 0, 1),
        "max_steps": (10, 5),
        "tries_total": (False, True),
        "samples": (1, 3),
        "revisions": (2,),
    }
    monkeypatch.setattr(evaluation, "run_evaluation", evaluate)
    assert evaluation.measure_rate(Options(**options)) == "0.500"
    (found,) = asked
    assert (found.method, found.generator, found.verifier) == (("safe",), ("first",), ("judge",))
    assert (found.max_retries, found.max_steps, found.tries_total) == ((3,), (10,), (False,))
    assert (found.samples, found.revisions, found.judge) == ((), (), None)
