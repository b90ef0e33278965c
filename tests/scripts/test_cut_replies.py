"""Models that think longer than they may: nothing is lost, and the same command asks again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from safe_stepwise import prompts
from safe_stepwise.engines import client
from safe_stepwise.errors import UserError
from scripts import build_verified, evaluate_stepwise
from tests.scripts.test_evaluate_stepwise import arguments as evaluation
from tests.scripts.test_evaluate_stepwise import asking, by_method, own, results
from tests.scripts.test_evaluate_stepwise import contents as visible
from tests.scripts.test_teacher_runs import arguments, contents, noise_types, rows, write
from tests.servers.openai_server import Cut, MockServer
from tests.servers.stepper import Stepper, chance
from tests.servers.truth import Truth

Reply = Callable[[Mapping[str, Any]], str]
Body = Mapping[str, Any]


def role_of(body: Body) -> str:
    """Who asks, by the last instructions of a request."""
    system = body["messages"][0]["content"]
    if len(body["messages"]) > 2:
        return "glean"
    names = ["verification/extract", "verification/resolve", "verification/path"]
    found = [name for name in names if system == prompts.load(name).system]
    return found[0].partition("/")[2] if found else ""


def name_of(body: Body) -> str:
    """As the server names it."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def some(body: Body) -> bool:
    """A third of all prompts, whatever their limit."""
    return chance(json.dumps(body["messages"])) < 1 / 3


class Thinker:
    """Says what another says; what ``is_hard`` takes it so many tokens. Knows what it cut."""

    def __init__(self, reply: Reply, needs: float, is_hard: Callable[[Body], bool] = some) -> None:
        self.reply, self.needs, self.is_hard = reply, needs, is_hard
        self.cut: list[Body] = []

    def __call__(self, body: Body) -> str:
        if self.is_hard(body) and body["max_completion_tokens"] < self.needs:
            self.cut.append(body)
            return Cut("" if len(self.cut) % 2 else " \n")  # with and without a thought beside it
        return self.reply(body)


def first_limits(bodies: Iterable[Body]) -> set[str]:
    """The names of the calls that were not second calls."""
    return {
        name_of(body)
        for body in bodies
        if body["max_completion_tokens"] in prompts.limits().values()
        and body["max_completion_tokens"] // 2 not in limits_of(bodies, body)
    }


def limits_of(bodies: Iterable[Body], like: Body) -> set[int]:
    same = (body for body in bodies if body["messages"] == like["messages"])
    return {body["max_completion_tokens"] for body in same}


def hard_path(body: Body) -> bool:
    return role_of(body) == "path" and some(body)


# ------------------------------------------------------------------------------------ verification


def explanations(output: Path) -> dict[str, str]:
    (file,) = (output / "safe-noise-labels").rglob("*.parquet")
    return {row["id"]: row["explanation"] for row in pq.read_table(file).to_pylist()}


def test_a_teacher_that_thinks_too_long_loses_no_reply(tmp_path: Path) -> None:
    known = rows(60)
    file, truth = write(tmp_path / "rows.jsonl", known), Truth(known)
    thinker = Thinker(truth, float("inf"), hard_path)
    with MockServer(thinker) as server:
        build_verified.main(arguments(file, server.spec, tmp_path / "out"))
    cut = first_limits(thinker.cut)
    assert 10 < len(cut) < 40
    assert len(thinker.cut) == 2 * len(cut)
    assert {body["max_completion_tokens"] for body in thinker.cut} == {1024, 2048}
    assert max(server.asked.values()) == 1
    told = [said for said in explanations(tmp_path / "out").values() if "cut at" in said]
    assert len(told) >= len(cut)
    assert {noise_types(tmp_path / "out")[i] for i, s in explanations(tmp_path / "out").items()
            if "cut at 2,048 tokens" in s} == {"unparsed"}  # fmt: skip
    with MockServer(truth, port=server.port) as again:
        build_verified.main(arguments(file, again.spec, tmp_path / "out"))
    assert set(again.asked) == cut
    assert max(again.asked.values()) == 1
    with MockServer(truth, port=server.port) as fresh:
        build_verified.main(arguments(file, fresh.spec, tmp_path / "clean"))
    assert contents(tmp_path / "out") == contents(tmp_path / "clean")


def test_a_raised_limit_is_paid_for_where_it_is_needed(tmp_path: Path) -> None:
    known = rows(40)
    file, truth = write(tmp_path / "rows.jsonl", known), Truth(known)
    thinker = Thinker(truth, 3000, hard_path)
    with MockServer(thinker, keep_bodies=True) as server:
        build_verified.main(arguments(file, server.spec, tmp_path / "out"))
        before, cut = len(server.bodies), len(thinker.cut)
        options = arguments(file, server.spec, tmp_path / "out", **{"max-tokens": "path=4000"})
        build_verified.main(options)
        asked = server.bodies[before:]
    assert len(thinker.cut) == cut > 10
    assert all(map(hard_path, asked))
    assert [body["max_completion_tokens"] for body in asked] == [4000] * (cut // 2)
    assert noise_types(tmp_path / "out") == {q.id: noise for q, noise in known}


def test_twice_the_room_is_enough_for_most(tmp_path: Path) -> None:
    known = rows(30)
    file, truth = write(tmp_path / "rows.jsonl", known), Truth(known)
    thinker = Thinker(truth, 1500, lambda body: role_of(body) in ("resolve", "path"))
    with MockServer(thinker) as server:
        build_verified.main(arguments(file, server.spec, tmp_path / "out"))
        asked = sum(server.asked.values())
        assert thinker.cut
        build_verified.main(arguments(file, server.spec, tmp_path / "out"))
        assert sum(server.asked.values()) == asked
    with MockServer(truth, port=server.port) as fresh:
        build_verified.main(arguments(file, fresh.spec, tmp_path / "clean"))
    assert contents(tmp_path / "out") == contents(tmp_path / "clean")


def test_what_was_said_before_the_limit_is_not_read_though_it_could_be(tmp_path: Path) -> None:
    """It may be a draft: a thought that the model's template opened has no mark."""
    known = rows(40)
    file, truth = write(tmp_path / "rows.jsonl", known), Truth(known)
    with MockServer(lambda body: Cut(truth(body)) if hard_path(body) else truth(body)) as server:
        build_verified.main(arguments(file, server.spec, tmp_path / "out"))
    types, whys = noise_types(tmp_path / "out"), explanations(tmp_path / "out")
    unread = {id_ for id_, why in whys.items() if "cut at 2,048 tokens" in why}
    assert len(unread) > 3
    assert types == {q.id: "unparsed" if q.id in unread else noise for q, noise in known}


def test_a_run_in_which_all_is_cut_says_what_to_raise(tmp_path: Path) -> None:
    known = rows(4)
    file = write(tmp_path / "rows.jsonl", known)
    with MockServer(lambda _: Cut("")) as server:
        with pytest.raises(UserError, match=r"none of the 4 .* raise --max-tokens extract=N above"):
            build_verified.main(arguments(file, server.spec, tmp_path / "out"))
        asked = set(server.asked)
        with pytest.raises(UserError, match=r"cut at 8,192 tokens .* same command again"):
            build_verified.main(arguments(file, server.spec, tmp_path / "out"))
    assert set(server.asked) == asked
    assert set(server.asked.values()) == {2}


def test_a_hopeless_run_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_FAILURES", 10)
    file = write(tmp_path / "rows.jsonl", rows(60))
    with (
        MockServer(lambda _: Cut("")) as server,
        pytest.raises(UserError, match=r"the first \d+ requests failed, the last: cut at 8,1"),
    ):
        build_verified.main(arguments(file, server.spec, tmp_path / "out"))
    assert sum(server.asked.values()) < 50


def test_limits_and_efforts_reach_the_server(tmp_path: Path) -> None:
    known = rows(5)
    file = write(tmp_path / "rows.jsonl", known)
    options = arguments(file, "", tmp_path / "out")
    options += ["--max-tokens", "6000", "--max-tokens", "path=8000"]
    options += ["--reasoning-effort", "resolve=low", "--reasoning-effort", "path=high"]
    with MockServer(Truth(known), keep_bodies=True) as server:
        options[options.index("")] = server.spec
        build_verified.main(options)
    said = {(role_of(body), body["max_completion_tokens"], body.get("reasoning_effort")) for body in server.bodies}
    assert said == {("extract", 6000, None), ("glean", 6000, None), ("resolve", 6000, "low"), ("path", 8000, "high")}
    # Who thinks is not told not to, and the others are.
    assert all(("reasoning_effort" in b) != ("chat_template_kwargs" in b) for b in server.bodies)
    (labels,) = (tmp_path / "out" / "safe-noise-labels").rglob("*.parquet")
    (teacher,) = set(pq.read_table(labels).column("teacher").to_pylist())
    assert "(reasoning effort: path high, resolve low)" in teacher


def test_an_estimate_counts_replies_at_the_limits_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "rows.jsonl", rows(10))
    options = [*arguments(file, "openai:m@http://host/v1", tmp_path / "out"), "--estimate"]

    def replies(*more: str) -> dict[str, int]:
        build_verified.main([*options, *more])
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        roles = ("extract", "glean", "resolve", "path")
        return {line[0]: int(line[-1].replace(",", "")) for line in lines if line[:1] and
                line[0] in roles}  # fmt: skip

    plain = replies()
    given = replies("--max-tokens", "path=7000", "--reasoning-effort", "resolve=low")
    assert given == plain | {"path": 10 * 7000, "resolve": 10 * 1024}


# ---------------------------------------------------------------------------------------- the loop


def hard_steps(body: Body) -> bool:
    """Steps and verdicts of a third of the prompts; of the judge all is easy."""
    return "Contestant's answer" not in body["messages"][1]["content"] and some(body)


@pytest.mark.parametrize("is_hard", [hard_steps, some])
def test_a_loop_that_thinks_too_long_loses_no_reply(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_hard: Callable[[Body], bool]
) -> None:
    file, output = own(tmp_path / "own.jsonl", 40), tmp_path / "out"
    thinker = Thinker(Stepper(), float("inf"), is_hard)
    with MockServer(thinker) as server:
        evaluate_stepwise.main(evaluation(file, output, *asking(server.spec, "safe")))
    said = capsys.readouterr().out
    cut = {name_of(body) for body in thinker.cut}
    first = first_limits(thinker.cut)
    assert max(server.asked.values()) == 1
    (run,) = results(output)["runs"]
    stopped = [one.trajectory.stop_reason for one in by_method(output)["safe"]]
    assert stopped.count("failed") == run["all"]["failed"] > 10
    for one in by_method(output)["safe"]:
        failure = one.trajectory.failure
        assert failure.startswith("cut at ") == (one.trajectory.stop_reason == "failed"), failure
    assert "trajectories that failed: " in said
    assert "the last that failed: cut at " in said
    with MockServer(Stepper(), port=server.port) as again:
        evaluate_stepwise.main(evaluation(file, output, *asking(again.spec, "safe")))
    assert not set(again.asked) & (set(server.answered) - cut)
    assert first <= set(again.asked)
    assert max(again.asked.values()) == 1
    with MockServer(Stepper(), port=server.port) as fresh:
        clean = tmp_path / "clean"
        evaluate_stepwise.main(evaluation(file, clean, *asking(fresh.spec, "safe")))
    assert visible(output) == visible(clean)


def test_another_effort_is_another_system(tmp_path: Path) -> None:
    file = own(tmp_path / "own.jsonl", 5)
    with MockServer(Stepper(), keep_bodies=True) as server:
        options = asking(server.spec, "safe")
        evaluate_stepwise.main(evaluation(file, tmp_path / "out", *options))
        plain, made = results(tmp_path / "out"), len(server.bodies)
        more = ("--reasoning-effort", "generate=low", "--max-tokens", "judge=600")
        evaluate_stepwise.main(evaluation(file, tmp_path / "out", *options, *more))
    sent = {body.get("reasoning_effort") for body in server.bodies[made:]}
    assert sent == {"low"}  # verdicts and judgements were known
    found = results(tmp_path / "out")
    assert "reasoning_effort" not in plain["runs"][0]["options"]
    assert found["runs"][0]["options"]["reasoning_effort"] == "generate low"
    assert "max_tokens" not in found["runs"][0]["options"]  # no trajectory hangs on the judge's


def test_an_effort_for_a_player_without_a_model_is_one_line(tmp_path: Path) -> None:
    file = own(tmp_path / "own.jsonl", 2)
    script = tmp_path / "script.json"
    script.write_text('{"replies": [], "default": "Step 1: ####ANSWER: x (Final Answer)"}')
    options = [f"--generator=mock:{script}", "--method=no_verification"]
    with pytest.raises(UserError, match=r"mock:.*leave out --reasoning-effort") as caught:
        evaluate_stepwise.main(evaluation(file, tmp_path / "out", *options, "--reasoning-effort=low"))
    assert "\n" not in str(caught.value)
