"""Outcomes and questions as lines: what is written is what is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evaluators.outcomes import Asked, Outcome, read_outcomes, read_questions
from safe_stepwise.errors import UserError
from safe_stepwise.records import Attempt, Feedback, Passage, Step, Trajectory, Usage
from safe_stepwise.store.names import QUESTIONS, TRAJECTORIES

TRAJECTORY = Trajectory(
    "q\n1",
    "safe",
    (Step(1, "####ANSWER: Oru", "Final Answer"),),
    (
        Attempt(1, "no\u2028step", Feedback("Malformed", "No.", "Do."), False, Usage(9, 4, 1)),
        Attempt(1, "Step 1: ####ANSWER: Oru (Final Answer)", None, True, Usage(9), Usage(1, 2, 3)),
    ),
    "Oru",
    "answered",
)
OUTCOME = Outcome(
    "musique", "g", "v", "safe", 10, 3, "q\n1", 1.0, 0.5, "correct", TRAJECTORY, True, "It is so."
)
ASKED = Asked("musique", "q1", "Where?", ("Oru", "Óru"), (Passage("Oru", ("A.", "B."), True),))


def test_lines_come_back_as_they_were(tmp_path: Path) -> None:
    none = replace(OUTCOME, verdict=None, judge="")
    text = f"{OUTCOME.to_json()}\n{none.to_json()}\n"
    (tmp_path / TRAJECTORIES).write_text(text, encoding="utf-8")
    (tmp_path / QUESTIONS).write_text(ASKED.to_json() + "\n", encoding="utf-8")
    assert list(read_outcomes(tmp_path)) == [OUTCOME, none]
    assert list(read_questions(tmp_path)) == [ASKED]


@pytest.mark.parametrize(
    "line", ["{", "[]", "{}", OUTCOME.to_json().replace('"correct"', '"perhaps"'), "null"]
)
def test_a_line_that_is_none_is_named(tmp_path: Path, line: str) -> None:
    text = f"{OUTCOME.to_json()}\n{line}\n"
    (tmp_path / TRAJECTORIES).write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="line 2: cannot be read"):
        list(read_outcomes(tmp_path))


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="evaluate_stepwise"):
        list(read_questions(tmp_path))
