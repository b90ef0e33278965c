"""Outcomes and questions as lines: what is written is what is read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from evaluators.outcomes import Outcome, QuestionRecord, read_outcomes, read_questions
from safe_stepwise.errors import UserError
from safe_stepwise.records import Attempt, Feedback, Hop, Passage, Step, Trajectory, Triple, Usage
from safe_stepwise.store.boundary import read
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


def outcome_in(line: str) -> Outcome:
    return read(Outcome, json.loads(line), "the outcome")


def question_in(line: str) -> QuestionRecord:
    return read(QuestionRecord, json.loads(line), "the question")


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
    assert question_in(asked.to_json()) == asked
    assert not {"evidence", "decomposition", "kind"} & json.loads(ASKED.to_json()).keys()
    question = asked.as_question
    assert (question.evidence, question.decomposition, question.kind) == ((triple,), (hop,), "comparison")
    assert question.accepted == ("Oru", "Óru")
    assert QuestionRecord.from_question(question, {"drop_gold": True, "corpus": "c@01"}) == replace(
        asked, conditions={"drop_gold": True}
    )
    broken = {**json.loads(asked.to_json()), "evidence": [{"head": "Oru"}]}
    (tmp_path / QUESTIONS).write_text(json.dumps(broken))
    with pytest.raises(UserError, match="line 1"):
        list(read_questions(tmp_path))


def test_lines_of_before_conditions_have_none(tmp_path: Path) -> None:
    under = replace(OUTCOME, conditions={"drop_gold": True, "corpus": "c@01"})
    old = {k: v for k, v in json.loads(OUTCOME.to_json()).items() if k != "conditions"}
    assert outcome_in(json.dumps(old)) == OUTCOME
    assert outcome_in(under.to_json()) == under != OUTCOME
    asked = {k: v for k, v in json.loads(ASKED.to_json()).items() if k != "conditions"}
    assert question_in(json.dumps(asked)) == ASKED
    with pytest.raises(ValueError, match=r"the outcome\.conditions is not an object"):
        outcome_in(json.dumps({**old, "conditions": ["drop_gold"]}))


@pytest.mark.parametrize("line", ["{", "[]", "{}", OUTCOME.to_json().replace('"correct"', '"perhaps"'), "null"])
def test_a_line_that_is_none_is_named(tmp_path: Path, line: str) -> None:
    text = f"{OUTCOME.to_json()}\n{line}\n"
    (tmp_path / TRAJECTORIES).write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="line 2: cannot be read"):
        list(read_outcomes(tmp_path))


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="evaluate_stepwise"):
        list(read_questions(tmp_path))
