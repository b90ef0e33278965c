"""Tokens of thoughts are counted apart by role, from a server's reply to every table; without any, no byte moves."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.synthetic import Spec, generate
from builders.verified.teachers.choice import spending
from evaluators.comparison.comparing import compare
from evaluators.comparison.costs import cost_sheet
from evaluators.prompting.measures import score_outcomes
from evaluators.run.runner import collect_verdicts, render_run_usage
from evaluators.traces.page import _run
from safe_stepwise.commands.serving import usage_object
from safe_stepwise.commands.transcript import tokens_by_role
from safe_stepwise.engines.base import Completion, EngineError, Message, Request, completion
from safe_stepwise.engines.client import Client, ResponseCache, render_usage
from safe_stepwise.engines.openai import read_completion
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.limits import Limits
from safe_stepwise.methods.running import make_answerer, run_questions, statistics
from safe_stepwise.open import open_engine
from safe_stepwise.records import Question, Trajectory, Usage, as_object, canonical_json
from safe_stepwise.store.boundary import parse_json, read
from tests.makers.outcomes import outcome

ASKED = Request((Message("user", "Where?"),), role="path")
SPEC = "symbolic:error_rate=0.2,seed=3"


class Scripted:
    """An engine that gives some replies in turn."""

    name, simulated = "scripted", False
    identity: Mapping[str, Any] = {"engine": "scripted"}

    def __init__(self, *replies: Completion) -> None:
        self.replies = [*replies]

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        return [self.replies.pop(0) for _ in requests]

    async def check(self) -> None: ...

    async def close(self) -> None: ...


class Thinking:
    """A symbolic player that thinks five words before every reply, if it thinks."""

    simulated = True

    def __init__(self, thinks: bool) -> None:
        self.inner, self.thinks = open_engine(SPEC), thinks
        self.name, self.identity = self.inner.name, self.inner.identity

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        said = await self.inner.generate(requests)
        thought = "is it so or not"
        return [replace(reply, thought=thought) if self.thinks else reply for reply in said]  # type: ignore[type-var]

    async def check(self) -> None: ...

    async def close(self) -> None: ...


def reply_of(message: Mapping[str, Any], usage: Mapping[str, Any]) -> Completion:
    body = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
    return read_completion(json.dumps(body).encode())


@pytest.mark.parametrize(
    ("message", "usage", "expected"),
    [
        # As the server counts them, with and without the thought's text.
        ({"content": "Oru", "reasoning": "Tesk?"}, {"completion_tokens": 40, "details": 30}, (40, 30)),
        ({"content": "Oru"}, {"completion_tokens": 40, "details": 30}, (40, 30)),
        # By the share of its text where the server counts none.
        ({"content": "<think>Tesk?</think>Oru"}, {"completion_tokens": 40}, (40, 25)),
        ({"content": "Oru", "reasoning_content": "Tesk?"}, {"completion_tokens": 40, "details": 0}, (40, 25)),
        ({"content": None, "reasoning": "Tesk?"}, {"completion_tokens": 40}, (40, 40)),
        # Beside the completion, as the sum says.
        ({"content": "Oru"}, {"completion_tokens": 4, "details": 300, "total_tokens": 313}, (304, 300)),
        # Nonsense: never more than there are, and no thought where there is none.
        ({"content": "Oru"}, {"completion_tokens": 4, "details": 300, "total_tokens": 13}, (4, 4)),
        ({"content": "Oru"}, {"completion_tokens": 4, "details": "many"}, (4, 0)),
        ({"content": "Oru"}, {"completion_tokens": 4}, (4, 0)),
        ({"content": "<think></think>Oru"}, {"completion_tokens": 4}, (4, 0)),
        ({"content": "Oru", "reasoning": "Tesk?"}, {}, (0, 0)),
    ],
)
def test_a_server_s_reply_has_its_thought_s_tokens(
    message: dict[str, Any], usage: dict[str, Any], expected: tuple[int, int]
) -> None:
    whole = {"prompt_tokens": 9, "completion_tokens_details": {"reasoning_tokens": usage.pop("details", None)}}
    told = reply_of(message, whole | usage).usage
    assert (told.completion, told.thought) == expected


def test_details_that_are_no_object_count_nothing() -> None:
    for details in (None, 3, [], "x"):
        assert reply_of({"content": "Oru"}, {"completion_tokens": 4, "completion_tokens_details": details}).usage == (
            Usage(0, 0, 4)
        )


def test_a_call_asked_again_counts_both_thoughts_and_the_cache_keeps_the_sum(tmp_path: Path) -> None:
    first, second = completion("<think>Tesk", Usage(9, 0, 20), "length"), completion("Oru", Usage(9, 0, 30, 25))
    cache = ResponseCache(tmp_path / "replies.sqlite")
    client = Client(Scripted(first, second), cache)
    assert asyncio.run(client.complete(ASKED)).usage == Usage(18, 0, 50, 45)
    assert client.accounts["path"].thought == client.total().thought == 45
    cache.close()
    again = Client(Scripted(), ResponseCache(tmp_path / "replies.sqlite"))
    assert asyncio.run(again.complete(ASKED)).usage == Usage(18, 0, 50, 45)  # a reply that never said what it thought
    assert again.accounts["path"].thought == 0  # it cost nothing now


def test_a_row_of_nonsense_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    ResponseCache(path).close()
    rows = {
        "plain": "Oru",
        "bad": {"text": "Oru", "thought": "", "thought_tokens": -1},
        "worse": {"text": "Oru", "thought": "", "thought_tokens": "3"},
    }
    with sqlite3.connect(path) as db:
        for key, stored in rows.items():
            db.execute("insert into completions values (?, ?, 'stop', 9, 0, 40)", (key, json.dumps(stored)))
    cache = ResponseCache(path)
    plain = cache.get("plain")
    assert plain is not None
    assert plain.usage == Usage(9, 0, 40)
    for key in ("bad", "worse"):
        with pytest.raises(Exception, match="does not hold a model's reply"):
            cache.get(key)


def test_what_did_not_think_is_cached_and_recorded_as_before(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    cache = ResponseCache(path)
    asyncio.run(Client(Scripted(completion("Oru", Usage(9, 3, 4))), cache).complete(ASKED))
    cache.close()
    with sqlite3.connect(path) as db:
        ((text, *numbers),) = db.execute("select text, prompt, cached, completion from completions")
    assert (text, numbers) == ('"Oru"', [9, 3, 4])
    assert canonical_json(Usage(9, 3, 4)) == '{"cached":3,"completion":4,"prompt":9}'
    assert canonical_json(Usage(9, 3, 4, 2)) == '{"cached":3,"completion":4,"prompt":9,"thought":2}'
    for usage in (Usage(9, 3, 4), Usage(9, 3, 4, 2)):
        assert read(Usage, parse_json(canonical_json(usage)), "usage") == usage
    assert "thought" not in json.dumps(usage_object(Usage(9, 3, 4)))
    assert usage_object(Usage(9, 3, 4, 2))["completion_tokens_details"] == {"reasoning_tokens": 2}


@pytest.fixture(scope="module")
def runs() -> dict[bool, list[Trajectory]]:
    """The same questions, answered by a player that thinks, and by one that does not."""
    questions: list[Question] = [question for question, _ in generate(Spec(rows=6, seed=4, noise=0.0))]

    def run(thinks: bool) -> list[Trajectory]:
        clients = {"generator": Client(Thinking(thinks)), "verifier": Client(open_engine("symbolic"))}
        return asyncio.run(run_questions(questions, make_answerer(METHODS["safe"], clients, Limits())))

    return {thinks: run(thinks) for thinks in (True, False)}


def test_every_table_has_the_thoughts_of_who_thought_and_is_else_as_before(runs: dict[bool, list[Trajectory]]) -> None:
    plain, thinking = statistics(runs[False]), statistics(runs[True])
    thought = 5 * thinking.calls["generator"]
    assert thinking.thought_tokens == {"generator": thought}
    assert thinking.completion_tokens["generator"] == plain.completion_tokens["generator"] + thought
    assert thinking.completion_tokens["verifier"] == plain.completion_tokens["verifier"]
    assert "thought_tokens" not in as_object(plain)
    outcomes = {
        thinks: [outcome(t.question_id, trajectory=t, verifier="checker") for t in ts] for thinks, ts in runs.items()
    }
    assert score_outcomes(outcomes[True])["thought_tokens"] == {"generator": thought}
    assert "thought_tokens" not in score_outcomes(outcomes[False])

    sheets = {thinks: cost_sheet(compare(found)) for thinks, found in outcomes.items()}
    header, *rows = [line.split(",") for line in sheets[True].csv.decode().splitlines()]
    by_role = {row[header.index("role")]: dict(zip(header, row, strict=True)) for row in rows}
    assert [by_role[role]["thought_tokens"] for role in ("generator", "verifier", "overall")] == [
        str(thought),
        "0",
        str(thought),
    ]
    assert float(by_role["generator"]["thought_tokens_per_question"]) == pytest.approx(thought / 6, abs=0.05)
    assert b"thought" not in sheets[False].csv
    assert "thought" not in str(sheets[False].table)


def test_the_page_of_traces_and_the_answers_tokens_tell_them(runs: dict[bool, list[Trajectory]]) -> None:
    shown = {thinks: _run(outcome(kept[0].question_id, trajectory=kept[0])) for thinks, kept in runs.items()}
    calls = sum("generator" in a.usage for a in runs[True][0].attempts)
    assert ("Tokens of thoughts", f"generator {5 * calls}") in shown[True]["measures"]
    attempt = next(a for a in shown[True]["attempts"] if a["thoughts"])
    assert attempt["thoughts"] == [("generator (5 tokens)", "is it so or not")]
    assert "hought" not in json.dumps([shown[False]["measures"], shown[False]["cost"]])
    assert all(len(counts) == 3 for a in shown[True]["attempts"] for _, counts in a["tokens"])
    assert tokens_by_role(runs[True][0])["generator"]["thought"] == 5 * calls
    assert tokens_by_role(runs[True][0])["verifier"]["thought"] == 0
    assert "thought" not in tokens_by_role(runs[False][0])["generator"]


def test_accounts_and_verdicts_say_what_went_into_thoughts() -> None:
    def verdicts(*replies: Completion) -> tuple[Client, dict[str, Any]]:
        client = Client(Scripted(*replies))
        asked = {n: Request((Message("user", str(n)),), role="path") for n in range(len(replies))}
        return client, collect_verdicts(client, "one", "step", asked, lambda text, _: text, "unread").tokens()

    client, sums = verdicts(completion("<think>Tesk?</think>Oru", Usage(9, 0, 40)), completion("Oru", Usage(9, 0, 3)))
    assert sums["thought"] == 25
    assert "43 reply tokens, 25 of them thought" in next(render_run_usage(client, "one"))
    assert render_usage(client.total()).endswith("43.0 out (of which thought 25.0)")
    assert "of them thought" in spending(client)
    plain, sums = verdicts(completion("Oru", Usage(9, 0, 3)))
    assert "thought" not in sums
    for line in (next(render_run_usage(plain, "one")), render_usage(plain.total()), spending(plain)):
        assert "thought" not in line
