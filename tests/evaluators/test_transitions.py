"""A machine's moves as training rows: the requests that were sent, of right answers alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluators.outcomes import Outcome, QuestionRecord
from evaluators.transitions import Options, export_transitions, list_rows
from safe_stepwise.errors import UserError
from safe_stepwise.methods.machine import MachineError
from tests.makers.prompting import outcome_of, question
from tests.safe_stepwise.methods.machines import BAD, Script, find, summary, verdict

SCRIPTS: dict[str, Any] = {
    "sg_fsm1": {},
    "sg_fsm2": {"search": [BAD, find(2, "Oru")], "revise": [BAD, find()]},  # mended at the second attempt
    "sg_fsm_safe": {
        "search": [find(2, "Oru"), find(), find(2, "Oru")],
        "verify": [verdict("Unsupported"), verdict("Correct")],
    },
}


TRIPLE = ["a", "b", "c"]
WITH_FACTS = [find(sentences=[1], evidence=TRIPLE), find(2, "Oru", sentences=[0], evidence=TRIPLE)]


@pytest.mark.parametrize(
    ("method", "replies", "evidence"),
    [*((method, replies, False) for method, replies in SCRIPTS.items()), ("sg_fsm1", {"search": WITH_FACTS}, True)],
)
def test_rows_are_the_requests_that_were_sent(method: str, replies: Any, evidence: bool) -> None:
    script = Script(**replies)
    outcome = outcome_of(method, script, evidence=evidence)
    assert outcome.exact_match == 1
    rows = [*list_rows(outcome, question())]
    sent = {
        (request.messages[1].content, script.replies[role][min(n, len(script.replies[role]) - 1)])
        for role, requests in script.asked.items()
        for n, request in enumerate(requests)
        if role != "verify"
    }
    written = {(row["prompt"][1]["content"], row["completion"][0]["content"]) for row in rows}
    assert written == {(prompt, reply) for prompt, reply in sent if reply != BAD}
    assert {row["state"] for row in rows} >= {"q0", "q4"}


def save(folder: Path, *outcomes: Outcome) -> Options:
    (folder / "trajectories.jsonl").write_text("".join(f"{o.to_json()}\n" for o in outcomes), "utf-8")
    record = QuestionRecord.from_question(question(), {})
    (folder / "questions.jsonl").write_text(f"{record.to_json()}\n", "utf-8")
    return Options(folder=folder, output=folder / "rows.jsonl")


def test_only_right_answers_are_written_and_each_request_once(tmp_path: Path) -> None:
    first, summed = outcome_of("sg_fsm1", Script()), outcome_of("sg_fsm2", Script())
    wrong = outcome_of("sg_fsm2", Script(summarize=[summary("Kel")]), generator="other")
    mixed = replace(first.trajectory, attempts=summed.trajectory.attempts)
    other = replace(first, players={"generator": "edited"}, trajectory=mixed)
    options = save(tmp_path, first, summed, wrong, other, outcome_of("direct", Script(direct=["{}"])))
    said = export_transitions(options)
    assert said == f"{options.output}: 6 rows of 2 right answers; left out: 1 not replayed; left out: 1 wrong"
    rows = [json.loads(line) for line in options.output.read_text("utf-8").splitlines()]
    assert sorted(row["state"] for row in rows) == ["q0", "q0", "q2", "q2", "q4", "q6"]
    with pytest.raises(MachineError, match="no state"):
        list(list_rows(other, question()))
    with pytest.raises(UserError, match="choose another name"):
        export_transitions(replace(options, output=tmp_path / "trajectories.jsonl"))
    with pytest.raises(UserError, match="no state machine answered a question rightly"):
        export_transitions(save(tmp_path, wrong))
