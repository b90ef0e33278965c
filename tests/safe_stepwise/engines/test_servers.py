"""Several servers of one model: who is asked, and what becomes of the requests of one that is gone."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from safe_stepwise.engines import client as client_module
from safe_stepwise.engines import servers
from safe_stepwise.engines.base import EngineError, Message, Request
from safe_stepwise.engines.client import Client, ResponseCache
from safe_stepwise.engines.openai import OpenAIEngine
from safe_stepwise.engines.servers import PREFIX_CHARS, ServersEngine, read_servers
from safe_stepwise.errors import UserError
from safe_stepwise.open import open_engine
from tests.servers.openai_server import MockServer
from tests.sizes import size


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "FIRST_WAIT_S", 0.0)
    monkeypatch.setattr(client_module, "LONGEST_WAIT_S", 0.05)


def ask(question: int, step: int = 0) -> Request:
    passages = f"Passages of {question}: ".ljust(PREFIX_CHARS, ".")
    return Request((Message("system", "Judge."), Message("user", f"{passages} Step {step}")))


def echo(body: Any) -> str:
    return json.dumps(body["messages"][-1]["content"][-20:])


def complete(engine: Any, requests: list[Request], cache: ResponseCache | None = None) -> tuple[list[Any], Client]:
    async def run() -> tuple[list[Any], Client]:
        client = Client(engine, cache)
        await engine.check()
        replies = await client.complete_all(requests)
        await engine.close()
        return replies, client

    return asyncio.run(run())


def spec_of(*running: MockServer) -> str:
    return f"mock@{','.join(server.url for server in running)}"


def test_requests_with_the_same_beginning_go_to_the_same_server() -> None:
    with MockServer(echo, keep_bodies=True) as a, MockServer(echo, keep_bodies=True) as b:
        requests = [ask(question, step) for step in range(4) for question in range(30)]
        replies, _ = complete(read_servers(spec_of(a, b)), requests)
        assert not any(isinstance(reply, EngineError) for reply in replies)
        homes = [{body["messages"][1]["content"][:30] for body in server.bodies} for server in (a, b)]
        assert not homes[0] & homes[1]
        assert min(map(len, homes)) > 5, "and they are spread"
        assert a.calls + b.calls == len(requests)


@pytest.mark.parametrize("instant", range(size(20, 4)))
def test_one_that_goes_away_loses_nothing_and_repeats_nothing(instant: int, tmp_path: Path) -> None:
    requests = [ask(question, step) for question in range(12) for step in range(3)]
    limit = Random(instant).randrange(1, 18)
    with MockServer(echo, latency=0.002) as a, MockServer(echo, latency=0.002) as b:
        served = Counter[str]()

        def dying(body: Any) -> tuple[int, Any] | None:
            return (503, {"error": {"message": "gone"}}) if a.calls > limit else None

        a.refuses = dying
        cache = ResponseCache(tmp_path / "replies.sqlite")
        replies, client = complete(read_servers(spec_of(a, b)), requests, cache)
        assert [json.loads(reply.text) for reply in replies] == [r.messages[1].content[-20:] for r in requests]
        served = a.answered + b.answered
        assert sorted(served.values()) == [1] * len(requests)
        assert client.total().failed == 0
        again, _ = complete(read_servers(spec_of(a, b)), requests, cache)
        assert again == replies
        assert a.answered + b.answered == served


def test_a_server_that_is_not_there_is_noted_and_the_other_answers(capsys: pytest.CaptureFixture[str]) -> None:
    with MockServer(echo) as here:
        with MockServer(echo) as gone:
            url = gone.url
        replies, _ = complete(read_servers(f"mock@{url},{here.url}"), [ask(n) for n in range(8)])
        assert not any(isinstance(reply, EngineError) for reply in replies)
        assert here.calls == 8
    assert "no server answers there" in (told := capsys.readouterr().err)
    assert "the other servers are asked" in told
    with pytest.raises(UserError, match="no server answers there"):
        complete(read_servers(f"mock@{url},{here.url}"), [])


@pytest.mark.parametrize("changes", [{"model": "other", "unlisted": ()}, {"key": "k"}, {"status": 402}])
def test_one_that_can_never_answer_is_asked_no_more(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "REST_S", 0.0)
    with MockServer(echo) as good, MockServer(echo, **{"model": "mock", **changes}) as bad:
        engine = read_servers(f"mock@{good.url},{bad.url}")
        replies, _ = complete(engine, [ask(n) for n in range(12)])
        assert not any(isinstance(reply, EngineError) for reply in replies)
        assert good.calls == 12


def test_if_all_refuse_the_key_the_run_ends() -> None:
    with (
        MockServer(echo, status=402) as a,
        MockServer(echo, status=402) as b,
        pytest.raises(UserError, match="credit"),
    ):
        complete(read_servers(spec_of(a, b)), [ask(1)])


def test_a_refusal_is_no_reason_to_ask_another() -> None:
    with MockServer(echo, status=400) as a, MockServer(echo, status=400) as b:
        (reply,), _ = complete(read_servers(spec_of(a, b)), [ask(1)])
        assert isinstance(reply, EngineError)
        assert a.calls + b.calls == 1


def test_a_busy_server_leaves_requests_to_an_idle_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "MORE_CALLS", 2)
    hold = threading.Event()

    def slow(body: Any) -> str:
        hold.wait(0.02)
        return echo(body)

    with MockServer(slow) as a, MockServer(slow) as b:
        complete(read_servers(spec_of(a, b)), [ask(1, step) for step in range(40)])
        assert min(a.calls, b.calls) > 5


def test_a_spec_names_servers_once_and_one_server_is_as_before() -> None:
    engine = open_engine("openai:m@http://h:1/v1,http://h:2/v1?without=seed,schema")
    assert isinstance(engine, ServersEngine)
    assert [server.base_url for server in engine.servers] == ["http://h:1/v1", "http://h:2/v1"]
    assert engine.identity["base_url"] == "http://h:1/v1,http://h:2/v1"
    assert engine.name == "openai:m?without=schema,seed"
    turned = open_engine("openai:m@http://h:2/v1,http://h:1/v1?without=seed,schema")
    assert turned.identity == engine.identity
    assert isinstance(open_engine("openai:m@http://h:1/v1?without=seed,schema"), OpenAIEngine)
    assert isinstance(open_engine("openai:m@http://h:1/v1,http://h:1/v1"), OpenAIEngine)
    for wrong in ("http://:0/v1", "h:2/v1", "", "ftp://h:2/v1"):
        with pytest.raises(UserError, match="is not a server's address"):
            open_engine(f"openai:m@http://h:1/v1,{wrong}")
    with pytest.raises(UserError, match="is not a server's address"):
        open_engine("openai:m@http://h:1/v1;http://h:2/v1")
