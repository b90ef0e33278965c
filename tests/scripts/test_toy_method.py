"""One file adds a method: two roles of its own names go through every place that shows a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from safe_stepwise.engines.base import EngineError, Message, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.methods import METHODS
from safe_stepwise.metric import answers_by_loop
from safe_stepwise.records import ANSWERED, FAILED, Attempt, Question, Trajectory
from scripts import evaluate_stepwise, view_traces


@dataclass(frozen=True, slots=True)
class Looks:
    """How often the scout looks."""

    looks: int = 1


class Scouting:
    """A scout finds a clue, a writer answers from it or gives up."""

    name, title = "scouting", "Scouting"
    roles: tuple[str, ...] = ("writer", "scout")
    prompts: tuple[str, ...] = ()
    options = Looks

    async def answer(self, question: Question, clients: Mapping[str, Client], options: Looks) -> Trajectory:
        tries: list[Attempt] = []
        try:
            for look in range(options.looks):
                await self._ask(tries, clients, "scout", f"Look {look + 1}: {question.question}")
            await self._ask(tries, clients, "writer", f"From {tries[-1].text}: {question.question}")
        except EngineError:
            return Trajectory(question.id, self.name, (), tuple(tries), "", FAILED)
        answer = tries[-1].text
        stop = ANSWERED if answer != "unknown" else "gave_up"
        return Trajectory(question.id, self.name, (), tuple(tries), answer, stop)

    async def _ask(self, tries: list[Attempt], clients: Mapping[str, Client], role: str, text: str) -> None:
        reply = await clients[role].complete(Request((Message("user", text),), role=role))
        state, after = ("Look", "Write") if role == "scout" else ("Write", "End")
        number, usage = len(tries) + 1, {role: reply.usage}
        tries.append(
            Attempt(number, reply.text, None, True, usage, state=state, next_state=after,
                    read={"said": reply.text})
        )  # fmt: skip


@pytest.fixture
def players(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    monkeypatch.setitem(METHODS, "scouting", Scouting())
    monkeypatch.setenv("SAFE_STEPWISE_CACHE", str(tmp_path / "replies.sqlite"))
    said = {
        "scout": {"replies": [{"contains": "Oru", "reply": "Oru lies in Marn"}], "default": "none"},
        "writer": {"replies": [{"contains": "Marn", "reply": "Marn"}], "default": "unknown"},
    }
    for role, script in said.items():
        (tmp_path / f"{role}.json").write_text(json.dumps(script), encoding="utf-8")
    return {role: f"mock:{tmp_path / role}.json" for role in said}


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    file = tmp_path / "questions.jsonl"
    rows = [("Where is Oru?", "Marn"), ("Where is Vel?", "Kelvia")]
    page = {"title": "Oru", "text": "Oru is a town."}
    lines = [json.dumps({"question": q, "answer": a, "passages": [page]}) for q, a in rows]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_it_runs_beside_the_others(
    players: Mapping[str, str], questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    output = tmp_path / "results"
    steps = tmp_path / "steps.json"
    steps.write_text('{"replies": [], "default": "Step 1: ####ANSWER: Marn (Final Answer)"}')
    named = [f"--player={role}={spec}" for role, spec in players.items()]
    evaluate_stepwise.main(
        ["--questions", str(questions), "--output", str(output), "--method", "scouting",
         "--method", "no_verification", f"--generator=mock:{steps}", *named, "--option=looks=1,2"]
    )  # fmt: skip
    assert "scouting" in capsys.readouterr().out
    results = json.loads((output / "results.json").read_text())
    runs = [(run["method"], run["options"].get("looks")) for run in results["runs"]]
    assert sorted(runs, key=str) == [("no_verification", None), ("scouting", 1), ("scouting", 2)]
    twice = next(run for run in results["runs"] if run["options"].get("looks") == 2)
    assert set(twice["players"]) == {"writer", "scout"}
    assert twice["all"]["exact_match"] == 0.5
    assert twice["all"]["calls"] == {"scout": 4, "writer": 2, "generator": 0}
    assert twice["all"]["prompt_tokens"]["scout"] > twice["all"]["prompt_tokens"]["writer"] > 0
    assert twice["all"]["stop_reasons"] == {"answered": 1, "gave_up": 1}
    told = (output / "report" / "comparison.md").read_text()
    assert "Scouting" in told
    assert "looks=2" in told
    assert results["comparison"]
    cost = (output / "report" / "cost.md").read_text()
    assert "scout" in cost
    assert "gave_up" in cost
    view_traces.main([str(output)])
    page = (output / "traces.html").read_text(encoding="utf-8")
    assert "Scouting" in page
    assert "Write" in page
    before = {file.name: file.read_bytes() for file in output.iterdir() if file.is_file()}
    evaluate_stepwise.main(
        ["--questions", str(questions), "--output", str(output), "--method", "scouting",
         "--method", "no_verification", f"--generator=mock:{steps}", *named, "--option=looks=1,2"]
    )  # fmt: skip
    assert {name: (output / name).read_bytes() for name in before} == before


def test_the_metric_runs_it(players: Mapping[str, str]) -> None:
    found = answers_by_loop(
        ["Where is Oru?", "Where is Vel?"], [["Oru is a town."]] * 2, [["Marn"], ["Kelvia"]],
        method="scouting", players=players, options={"looks": 2},
    )  # fmt: skip
    assert found["exact_match"] == 0.5
    assert found["calls_per_question"] == 3
    assert found["prompt_tokens"]["scout"] > 0


def test_a_player_that_cannot_be_opened_is_named_by_its_option(
    players: Mapping[str, str], questions: Path, tmp_path: Path
) -> None:
    named = ["--player=writer=mock:none.json", f"--player=scout={players['scout']}"]
    with pytest.raises(UserError, match=r"^--player writer: mock:none\.json"):
        evaluate_stepwise.main(
            ["--questions", str(questions), "--output", str(tmp_path / "out"), "--method",
             "scouting", *named]
        )  # fmt: skip
