"""What players that count no tokens would have been sent: sums, and nothing that hangs on order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from builders.synthetic import generate, parse_spec
from safe_stepwise.engines.base import Completion, EngineError, Message, Request
from safe_stepwise.engines.client import Client, ResponseCache
from safe_stepwise.engines.mock import CountingClient, MockEngine, PrefixCache, prompt_tokens, split_tokens
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.limits import Limits
from safe_stepwise.methods.running import make_answerer, run_questions
from safe_stepwise.open import open_engine
from safe_stepwise.records import Question, Trajectory, Usage

SPECS = {"generator": "symbolic:error_rate=0.4,seed=2", "verifier": "symbolic"}


class Silent:
    """A player that says one thing and counts nothing."""

    name, identity, simulated = "silent", {"engine": "silent"}, True

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        return [Completion("Yes, so it is.") for _ in requests]

    async def check(self) -> None: ...

    async def close(self) -> None: ...


def asked(*turns: str) -> Request:
    return Request((Message("system", "Be brief. " * 20), *(Message("user", t) for t in turns)))


def ask(client: Client, *requests: Request) -> list[Usage]:
    async def all_of_them() -> list[Usage]:
        return [(await client.complete(request)).usage for request in requests]

    return asyncio.run(all_of_them())


def test_a_request_is_counted_as_the_mock_does() -> None:
    first, second = asked("Where is Oru? " * 30), asked("Where is Oru? " * 30 + "Say it again.")
    found = ask(CountingClient(Client(Silent())), first, second, second)
    mock = MockEngine(lambda _: "Yes, so it is.", cache=PrefixCache())
    theirs = ask(Client(mock), replace(first, messages=first.messages[:1]), first, second, second)
    assert found == theirs[1:]
    assert [u.prompt for u in found] == [len(prompt_tokens(r)) for r in (first, second, second)]
    assert {u.completion for u in found} == {len(split_tokens("Yes, so it is."))} == {6}
    # The instructions are there from the start, the question from the second request on.
    system = len(prompt_tokens(first)) - len(prompt_tokens(Request(first.messages[1:])))
    assert found[0].cached == system // 16 * 16
    assert found[0].cached < found[1].cached <= found[2].cached < found[2].prompt


def test_what_is_counted_already_is_left_alone() -> None:
    mock = MockEngine(lambda _: "Yes.", cache=PrefixCache())
    plain = ask(Client(mock), asked("a"))
    assert ask(CountingClient(Client(MockEngine(lambda _: "Yes.", cache=PrefixCache()))), asked("a")) == plain
    server = Silent()
    server.simulated = False  # a server that reports no usage: nobody knows
    assert ask(CountingClient(Client(server)), asked("a")) == [Usage()]


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    spec = parse_spec("rows=12,seed=5,noise=0")
    return [question for question, _ in generate(spec, split="validation")]


def run(
    questions: Sequence[Question], method: str, at_once: int = 1, cache: ResponseCache | None = None
) -> list[Trajectory]:
    clients = {role: Client(open_engine(spec), cache) for role, spec in SPECS.items()}
    players = {role: clients[role] for role in METHODS[method].roles}
    answer = make_answerer(METHODS[method], players, Limits())
    return asyncio.run(run_questions(questions, answer, at_once=at_once))


@pytest.mark.parametrize("method", ["no_verification", "self_verification", "safe"])
def test_tokens_hang_on_no_order_and_change_nothing_else(
    questions: list[Question], method: str, tmp_path: object
) -> None:
    found = run(questions, method)
    assert run(questions, method, at_once=12) == found
    assert run(questions[::-1], method, at_once=5)[::-1] == found
    # What an earlier run kept costs what it cost.
    cache = ResponseCache(tmp_path / "replies.sqlite")  # type: ignore[operator]
    run(questions[:7], "safe", cache=cache)
    assert run(questions, method, at_once=3, cache=cache) == found
    cache.close()
    used = [u for t in found for a in t.attempts for u in a.usage.values()]
    assert all(0 < u.cached < u.prompt for u in used)
    assert all(u.completion for u in used)
    assert sum(u.cached for u in used) > 0.7 * sum(u.prompt for u in used)
    plain = asyncio.run(
        run_questions(
            questions,
            lambda q: METHODS[method].answer(
                q, {r: Client(open_engine(SPECS[r])) for r in METHODS[method].roles}, Limits()
            ),
        )
    )
    assert all(u == Usage() for t in plain for a in t.attempts for u in a.usage.values())
    assert [uncounted(t) for t in found] == [uncounted(t) for t in plain]


def uncounted(trajectory: Trajectory) -> Trajectory:
    tries = tuple(replace(a, usage=dict.fromkeys(a.usage, Usage())) for a in trajectory.attempts)
    return replace(trajectory, attempts=tries)
