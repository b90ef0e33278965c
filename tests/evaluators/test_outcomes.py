"""Outcomes and questions as lines: what is written is what is read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluators.outcomes import Outcome, QuestionRecord, read_outcomes, read_questions
from safe_stepwise.errors import UserError
from safe_stepwise.methods.loop import tries_at_steps
from safe_stepwise.records import Attempt, Feedback, Hop, Passage, Step, Trajectory, Triple, Usage
from safe_stepwise.store.names import QUESTIONS, TRAJECTORIES

TRAJECTORY = Trajectory(
    "q\n1",
    "safe",
    (Step(1, "####ANSWER: Oru", "Final Answer"),),
    (
        Attempt(
            1, "no\u2028step", Feedback("Malformed", "No.", "Do."), False,
            {"generator": Usage(9, 4, 1)}, state="Search", read={"value": ["Oru", None]},
            next_state="Stop",
        ),
        Attempt(
            1, "Step 1: ####ANSWER: Oru (Final Answer)", None, True,
            {"generator": Usage(9), "verifier": Usage(1, 2, 3)},
        ),
    ),
    "Oru",
    "answered",
)  # fmt: skip
OUTCOME = Outcome(
    "musique", "safe", {"generator": "g", "verifier": "v"}, {"max_steps": 10, "max_retries": 3},
    "q\n1", 1.0, 0.5, "correct", TRAJECTORY, True, "It is so.",
)  # fmt: skip
ASKED = QuestionRecord("musique", "q1", "Where?", ("Oru", "Óru"), (Passage("Oru", ("A.", "B."), True),))


def test_lines_come_back_as_they_were(tmp_path: Path) -> None:
    none = replace(OUTCOME, verdict=None, judge="")
    text = f"{OUTCOME.to_json()}\n{none.to_json()}\n"
    (tmp_path / TRAJECTORIES).write_text(text, encoding="utf-8")
    (tmp_path / QUESTIONS).write_text(ASKED.to_json() + "\n", encoding="utf-8")
    assert list(read_outcomes(tmp_path)) == [OUTCOME, none]
    assert list(read_questions(tmp_path)) == [ASKED]


def test_evidence_is_kept_and_older_questions_have_none(tmp_path: Path) -> None:
    hop = Hop("Where is #1?", "Oru", 1)
    triple = Triple("Oru", "country", "Marn", 1, 0)
    asked = replace(ASKED, evidence=(triple,), decomposition=(hop,), kind="comparison")
    assert QuestionRecord.from_json(asked.to_json()) == asked
    assert not {"evidence", "decomposition", "kind"} & json.loads(ASKED.to_json()).keys()
    question = asked.asked
    assert (question.evidence, question.decomposition, question.kind) == ((triple,), (hop,), "comparison")
    assert question.accepted == ("Oru", "Óru")
    assert QuestionRecord.of(question, {"drop_gold": True, "corpus": "c@01"}) == replace(
        asked, conditions={"drop_gold": True}
    )
    broken = {**json.loads(asked.to_json()), "evidence": [{"head": "Oru"}]}
    (tmp_path / QUESTIONS).write_text(json.dumps(broken))
    with pytest.raises(UserError, match="line 1"):
        list(read_questions(tmp_path))


def test_lines_of_before_conditions_have_none(tmp_path: Path) -> None:
    under = replace(OUTCOME, conditions={"drop_gold": True, "corpus": "c@01"})
    old = {k: v for k, v in json.loads(OUTCOME.to_json()).items() if k != "conditions"}
    assert Outcome.from_json(json.dumps(old)) == OUTCOME
    assert Outcome.from_json(under.to_json()) == under != OUTCOME
    asked = {k: v for k, v in json.loads(ASKED.to_json()).items() if k != "conditions"}
    assert QuestionRecord.from_json(json.dumps(asked)) == ASKED
    with pytest.raises(ValueError, match=r"the outcome\.conditions is not an object"):
        Outcome.from_json(json.dumps({**old, "conditions": ["drop_gold"]}))


def attempt_of_before(text: str, label: str | None, verified: bool) -> dict[str, Any]:
    said = {"error_type": label, "diagnosis": "d", "guidance": "g", "query": None}
    usage = {"prompt": 5, "cached": 2, "completion": 1}
    none = {"prompt": 0, "cached": 0, "completion": 0}
    return {
        "number": 1, "text": text, "feedback": said if label else None, "accepted": False,
        "generator_usage": usage, "verifier_usage": usage if verified else none,
        "retrieved": [], "verdict": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("method", "verifier", "players"),
    [
        ("no_verification", "", {"generator": "g"}),
        ("self_verification", "g", {"generator": "g"}),
        ("safe", "g", {"generator": "g", "verifier": "g"}),
    ],
)
def test_lines_of_before_methods_had_roles_are_read(method: str, verifier: str, players: dict[str, str]) -> None:
    attempts = [
        attempt_of_before("odd", "Malformed", False),
        attempt_of_before("bad", "Contradictory", True),
        attempt_of_before("the answer", None, False),
    ]
    line = {
        "benchmark": "musique", "generator": "g", "verifier": verifier, "method": method,
        "max_steps": 2, "max_retries": 0, "question_id": "q1", "exact_match": 0.0, "f1": 0.0,
        "verdict": None, "simulated": False, "judge": "",
        "trajectory": {
            "question_id": "q1", "method": method, "steps": [], "attempts": attempts,
            "answer": "", "stop_reason": "max_steps",
        },
    }  # fmt: skip
    found = Outcome.from_json(json.dumps(line))
    assert found.players == players
    assert found.options == {"max_steps": 2, "max_retries": 0}
    odd, bad, last = found.trajectory.attempts
    assert [set(a.usage) for a in (odd, bad, last)] == [
        {"generator"}, {"generator", "verifier"}, {"generator"},
    ]  # fmt: skip
    assert tries_at_steps(found.trajectory) == (odd, bad)
    assert Outcome.from_json(found.to_json()) == found


@pytest.mark.parametrize("line", ["{", "[]", "{}", OUTCOME.to_json().replace('"correct"', '"perhaps"'), "null"])
def test_a_line_that_is_none_is_named(tmp_path: Path, line: str) -> None:
    text = f"{OUTCOME.to_json()}\n{line}\n"
    (tmp_path / TRAJECTORIES).write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="line 2: cannot be read"):
        list(read_outcomes(tmp_path))


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="evaluate_stepwise"):
        list(read_questions(tmp_path))
