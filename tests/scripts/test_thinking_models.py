"""Thinking models from end to end: whoever thinks before every reply, cut in a third, ends where who doesn't ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from safe_stepwise.metric.compute import answers_given
from safe_stepwise.records import Attempt
from safe_stepwise.rewards import step_reward, trajectory_reward
from scripts import build_verified, evaluate_stepwise, evaluate_verifier
from tests.safe_stepwise.checking.test_rewards import COLUMNS, told
from tests.scripts.test_evaluate_stepwise import arguments as evaluation
from tests.scripts.test_evaluate_stepwise import asking, by_method, own, results
from tests.scripts.test_evaluate_verifier import arguments as verifier
from tests.scripts.test_evaluate_verifier import built, careless, gold, read  # noqa: F401 - fixtures
from tests.scripts.test_teacher_runs import arguments as teacher
from tests.scripts.test_teacher_runs import contents, rows, write
from tests.servers.openai_server import MockServer
from tests.servers.stepper import Stepper
from tests.servers.thinking import DRAFT, FORMS, Thinking
from tests.servers.truth import Truth

Reply = Callable[[Mapping[str, Any]], str]


class Both:
    """The same command asks a model that does not think, then one that does, under the same name."""

    def __init__(self, reply: Reply, form: str, run: Callable[[str, str], None]) -> None:
        self.thinking = Thinking(reply, form)
        with MockServer(reply) as server:
            run(server.spec, "plain")
        with MockServer(self.thinking, port=server.port) as server:
            run(server.spec, "thinking")
            calls = server.calls
            run(server.spec, "thinking")  # what it said is kept, what was cut in between included
            assert server.calls == calls
        assert len(self.thinking.cut) > 3  # of some the first reply was cut
        assert set(self.thinking.cut.values()) == {2}


def told_of(attempt: Attempt) -> tuple[Any, ...]:
    """All of an attempt but its cost and its thoughts."""
    return attempt.number, attempt.text, attempt.feedback, attempt.accepted, attempt.verdict


@pytest.mark.parametrize("form", FORMS)
def test_the_loop_and_the_judge(tmp_path: Path, form: str) -> None:
    file = own(tmp_path / "own.jsonl", 12)

    def run(spec: str, name: str) -> None:
        evaluate_stepwise.main(evaluation(file, tmp_path / name, *asking(spec, "safe", "self_verification")))

    Both(Stepper(), form, run)
    plain, thinking = by_method(tmp_path / "plain"), by_method(tmp_path / "thinking")
    assert set(plain) == set(thinking) == {"safe", "self_verification"}
    for method, outcomes in plain.items():
        for one, other in zip(outcomes, thinking[method], strict=True):
            assert (one.exact_match, one.f1, one.verdict, one.judge) == (
                other.exact_match, other.f1, other.verdict, other.judge,
            )  # fmt: skip
            mine, theirs = one.trajectory, other.trajectory
            assert (mine.steps, mine.answer, mine.stop_reason) == (theirs.steps, theirs.answer, theirs.stop_reason)
            assert [*map(told_of, mine.attempts)] == [*map(told_of, theirs.attempts)]
            assert not any(attempt.thoughts for attempt in mine.attempts)
            assert all(DRAFT in attempt.thoughts["generator"] for attempt in theirs.attempts)
    for before, after in zip(results(tmp_path / "plain")["runs"], results(tmp_path / "thinking")["runs"], strict=True):
        assert "thought_tokens" not in before["all"]
        assert set(after["all"].pop("thought_tokens")) == set(after["all"]["completion_tokens"])
        for kind in ("prompt", "cached", "computed", "completion"):
            del before["all"][f"{kind}_tokens"], after["all"][f"{kind}_tokens"]
        assert before["all"] == after["all"]


@pytest.mark.parametrize("form", FORMS)
def test_the_metric_s_judge(tmp_path: Path, form: str) -> None:
    answers = [f"N{n}" if n % 3 else "Wrong" for n in range(30)]
    scores: dict[str, Any] = {}

    def run(spec: str, name: str) -> None:
        scores[name] = answers_given(
            answers,
            [[f"N{n}"] for n in range(30)],
            benchmark="musique",
            judge=spec,
            questions=[f"What is the name of N{n}?" for n in range(30)],
            judge_repeats=2,
            cache=tmp_path / f"{name}.sqlite",
        )

    Both(Stepper(), form, run)
    assert scores["plain"] == scores["thinking"]
    assert scores["plain"]["accuracy"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("form", FORMS)
def test_the_teacher(tmp_path: Path, form: str) -> None:
    known = rows(25)
    file = write(tmp_path / "rows.jsonl", known)

    def run(spec: str, name: str) -> None:
        build_verified.main(teacher(file, spec, tmp_path / name))

    Both(Truth(known), form, run)
    assert contents(tmp_path / "plain") == contents(tmp_path / "thinking")


@pytest.mark.parametrize("form", FORMS)
def test_the_verifier_that_is_measured(built: Path, gold: dict[str, str], tmp_path: Path, form: str) -> None:  # noqa: F811
    def run(spec: str, name: str) -> None:
        evaluate_verifier.main(verifier(built, tmp_path / name, spec))

    Both(careless(gold), form, run)
    plain, thinking = read(tmp_path / "plain"), read(tmp_path / "thinking")
    for measured in (plain, thinking):
        tokens = [verifier.pop("tokens") for verifier in measured["verifiers"]]
        assert ("thought" in tokens[0]) == (measured is thinking)
    assert plain == thinking
    assert plain["verifiers"][0]["unparsed"] > 0
    for name in ("verdicts.jsonl", "prefixes.jsonl"):
        assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "thinking" / name).read_bytes()


@pytest.mark.parametrize("form", [name for name, (_, closes) in FORMS.items() if closes])
def test_rewards(form: str) -> None:
    opens, closes = FORMS[form]
    some = [one for one in told() if one.injected][:20]
    texts = [text for one in some for text in (one.ideal[0], one.injected[0])]
    columns = {name: [one.row[name] for one in some for _ in range(2)] for name in COLUMNS}
    steps = [text.splitlines()[0] for text in texts]
    none: list[list[str]] = [[] for _ in texts]

    def rewards(said: Callable[[str], Any]) -> tuple[list[float | None], list[float | None]]:
        return (
            trajectory_reward(texts, [said(text) for text in texts], **columns),
            step_reward(steps, [said(step) for step in steps], previous_steps=none, **columns),
        )

    plain = rewards(str)
    assert plain == rewards(lambda text: f"{opens}{DRAFT} no.{closes}{text}")
    assert plain == rewards(lambda text: [{"role": "assistant", "content": f"{opens}{DRAFT} no.{closes}{text}"}])
    assert plain == rewards(lambda text: [{"role": "assistant", "content": text, "reasoning_content": DRAFT}])
    assert {*plain[0]} > {1.0}
    if opens:  # what is cut in its thought earns nothing, not what the draft would
        assert {*rewards(lambda text: f"{opens}{text}")[0]} == {0.0}
        assert {*rewards(lambda text: f"{opens}{text}")[1]} == {0.0}


def test_drafts_are_such_as_readers_take() -> None:
    """Else all of the above would prove nothing."""
    assert json.loads(DRAFT[DRAFT.index("{") : DRAFT.index("}") + 1])["error_type"] == "Correct"
    assert "Step 1: ####ANSWER: Ardle (Final Answer)" in DRAFT
