"""The prompting methods from the command line: options, results, a run that was stopped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evaluators.run import runner
from safe_stepwise.engines.base import Request
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.errors import UserError
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.machine import MachineError
from safe_stepwise.metric import answers_by_loop
from scripts import evaluate_stepwise, view_traces
from tests.safe_stepwise.methods.machines import BAD, SIMPLE, find, stop, summary, verdict

PROMPTING = ("direct", "cot", "sp_cot", "react", "sg_fsm1", "sg_fsm2", "sg_fsm_safe")
REPLIES: dict[str, Any] = {
    "direct": '{"explain": "x", "answer": "N1"}',
    "cot": '{"explain": "x", "answer": "N1"}',
    "sp_cot": 'So: {"explain": "x", "answer": "N1"}',
    "react": "Thought: I know.\nAction: Finish[N1]",
    "decompose": SIMPLE,
    "search": find(1, "N1"),
    "terminate": stop("N1"),
    "summarize": summary("N1"),
    "revise": BAD,
    "verify": verdict("Correct"),
}


def script(folder: Path, **changes: str) -> str:
    rules = [{"role": role, "reply": said} for role, said in {**REPLIES, **changes}.items()]
    # No block ever fills: what is cached would depend on which question came first.
    said = {"replies": rules, "cache": {"block": 1_000_000}}
    (folder / "said.json").write_text(json.dumps(said), encoding="utf-8")
    return f"mock:{folder / 'said.json'}"


def questions(folder: Path, number: int = 3) -> Path:
    page = {"title": "Thing", "text": "Things have names."}
    rows = [{"id": f"q{n}", "question": f"Which N{n}?", "answer": f"N{n}", "passages": [page]} for n in range(number)]
    file = folder / "questions.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return file


def evaluate(folder: Path, spec: str, *more: str, methods: Sequence[str] = PROMPTING, number: int = 3) -> Any:
    evaluate_stepwise.main(
        [f"--questions={questions(folder, number)}", f"--output={folder / 'out'}",
         f"--cache={folder / 'replies.sqlite'}", *(f"--method={name}" for name in methods),
         f"--generator={spec}", f"--verifier={spec}", *more]
    )  # fmt: skip
    return json.loads((folder / "out" / "results.json").read_text(encoding="utf-8"))


def test_all_of_them_run_and_are_told_apart(tmp_path: Path) -> None:
    found = evaluate(tmp_path, script(tmp_path))
    runs = {run["method"]: run["all"] for run in found["runs"]}
    assert set(runs) == set(PROMPTING)
    right = {name: whole["exact_match"] for name, whole in runs.items()}
    assert right == {**dict.fromkeys(PROMPTING, 1 / 3), "sp_cot": 0.0}
    assert runs["sp_cot"]["stop_reasons"] == {"unreadable": 3}
    assert runs["direct"]["transitions"] == {"answer → end": 3}
    assert runs["sg_fsm2"]["transitions"] == dict.fromkeys(("q0 → q2", "q2 → q5", "q5 → q6", "q6 → end"), 3)
    assert runs["sg_fsm_safe"]["calls"] == {"generator": 6, "verifier": 3}
    assert runs["sg_fsm1"]["exhausted"] == 0
    assert "SG-FSM2" in (tmp_path / "out" / "report" / "comparison.md").read_text("utf-8")


def test_the_printed_table_says_yes_and_no_and_counts_no_steps_where_there_are_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, both = script(tmp_path), "--option=evidence=true,false"
    evaluate(tmp_path, spec, both, methods=("cot", "no_verification"))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    header = next(line for line in lines if "evidence" in line)
    methods = {"cot", "no_verification"}
    # From behind: a player's name may be several words.
    rows = [dict(zip(header[::-1], line[::-1], strict=False)) for line in lines]
    rows = [row for row in rows if row.get("method") in methods]
    told = [(row["method"], row["evidence"], row["steps"] == "-") for row in rows]
    assert sorted(told) == [
        ("cot", "no", True), ("cot", "yes", True), ("no_verification", "-", False),
    ]  # fmt: skip


def test_options_reach_the_methods_that_have_them(tmp_path: Path) -> None:
    spec = script(tmp_path)
    found = evaluate(
        tmp_path, spec, "--samples=1,3", "--iterations=2", "--revisions=0", "--sampling=paper",
        "--evidence", "--option=redo=1", methods=("direct", "cot", "sg_fsm1"),
    )  # fmt: skip
    options = [run["options"] for run in found["runs"]]
    shared = {"evidence": True, "sampling": "paper"}
    assert {"samples": 3, **shared} in options
    assert {"iterations": 2, "revisions": 0, "redo": 1, **shared} in options
    assert shared in options
    with pytest.raises(UserError, match="no method here has an option 'samples'"):
        evaluate(tmp_path, spec, "--samples=3", methods=("direct",))
    with pytest.raises(UserError, match="--sampling"):
        evaluate(tmp_path, spec, "--sampling=hot", methods=("direct",))


def test_without_passages_only_the_question_is_asked(tmp_path: Path) -> None:
    spec = script(tmp_path, few_shot_cot="1. N1 is a name.\nSo the answer is (N1).")
    found = evaluate(tmp_path, spec, "--passages=none", methods=("few_shot_cot",))
    assert found["runs"][0]["all"]["exact_match"] == 1 / 3
    assert found["settings"]["passages"] == "none"
    rows = (tmp_path / "out" / "questions.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(row)["passages"] for row in rows] == [[], [], []]
    with pytest.raises(UserError, match="--method cot reads passages, which these questions lack"):
        evaluate(tmp_path, spec, "--passages=none", methods=("few_shot_cot", "cot"))
    with pytest.raises(UserError, match="leave out --evidence"):
        evaluate(tmp_path, spec, "--passages=none", "--evidence", methods=("few_shot_cot",))


class Stopped(Exception):
    """As if the process had been killed."""


@pytest.mark.parametrize("after", [0, 7, 16])
def test_stopped_at_any_trajectory_it_ends_in_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    calls: list[Request] = []
    asked = MockEngine.generate

    async def generate(self: MockEngine, requests: Sequence[Request]) -> Any:
        calls.extend(requests)
        return await asked(self, requests)

    monkeypatch.setattr(MockEngine, "generate", generate)
    spec = script(tmp_path)
    evaluate(tmp_path, spec)
    whole, needed = contents(tmp_path / "out"), len(calls)
    for file in (tmp_path / "replies.sqlite", tmp_path / "out" / ".trajectories.jsonl"):
        file.unlink()
    calls.clear()
    kept, add = 0, runner.Journal.add

    def stops(self: runner.Journal, key: str, trajectory: Any) -> None:
        nonlocal kept
        if kept == after:
            raise Stopped
        kept += 1
        add(self, key, trajectory)

    with monkeypatch.context() as patch:
        patch.setattr(runner.Journal, "add", stops)
        with pytest.raises(Stopped):
            evaluate(tmp_path, spec)
    evaluate(tmp_path, spec)
    assert contents(tmp_path / "out") == whole
    assert len(calls) == needed


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def test_an_edge_that_is_not_declared_is_no_mistake_of_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = METHODS["sg_fsm1"].machine.states["q0"]  # type: ignore[attr-defined]
    monkeypatch.setattr(type(state), "edges", frozenset(), raising=False)
    with pytest.raises(MachineError, match="q0 has no edge to q2"):
        evaluate(tmp_path, script(tmp_path), methods=("sg_fsm1",))


def test_the_evaluation_sample_has_no_more_than_ten_passages(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^--passages all: .* give --split validation"):
        evaluate_stepwise.main(
            [f"--questions={tmp_path}", f"--output={tmp_path / 'out'}", "--method=direct",
             f"--generator={script(tmp_path)}", "--passages=all"]
        )  # fmt: skip


def test_the_viewer_and_the_metric_take_them_as_they_are(tmp_path: Path) -> None:
    spec = script(tmp_path)
    evaluate(tmp_path, spec)
    view_traces.main([str(tmp_path / "out")])
    page = (tmp_path / "out" / "traces.html").read_text(encoding="utf-8")
    assert all(METHODS[name].title in page for name in PROMPTING)
    for name in PROMPTING:
        found = answers_by_loop(
            ["Which N1?"], [["Things have names."]], [["N1"]], method=name, generator=spec,
            verifier=spec if name == "sg_fsm_safe" else None, cache=tmp_path / "others.sqlite",
        )  # fmt: skip
        assert found["exact_match"] == (name != "sp_cot")


def test_all_passages_are_those_of_the_benchmark_in_its_order(real_data: Path, tmp_path: Path) -> None:
    shown = {}
    for passages in ("10", "all"):
        out = tmp_path / passages
        evaluate_stepwise.main(
            [f"--questions={real_data / 'musique_dev.jsonl'}", "--benchmark=musique", "--limit=3",
             f"--output={out}", "--method=direct", f"--generator={script(tmp_path)}",
             f"--passages={passages}", f"--cache={tmp_path / 'replies.sqlite'}"]
        )  # fmt: skip
        lines = (out / "questions.jsonl").read_text("utf-8").splitlines()
        shown[passages] = [json.loads(line)["passages"] for line in lines]
        results = json.loads((out / "results.json").read_text("utf-8"))
        conditions = {"passages": "all"} if passages == "all" else {}
        assert results["runs"][0]["conditions"] == conditions
    for ten, every in zip(shown["10"], shown["all"], strict=True):
        assert (len(ten), len(every)) == (10, 20)
        assert all(page in every for page in ten)
        assert sum(p["is_gold"] for p in ten) == sum(p["is_gold"] for p in every) > 1
