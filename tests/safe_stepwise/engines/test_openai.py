"""The real client against a real, if mocked, server."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tenacity import AsyncRetrying

from safe_stepwise.engines import client as client_module
from safe_stepwise.engines.base import EFFORTS, Completion, Effort, EngineError, Message, Request, Sampling, Schema
from safe_stepwise.engines.client import Client, ResponseCache
from safe_stepwise.engines.openai import OpenAIEngine
from safe_stepwise.errors import UserError
from tests.servers.openai_server import ALL_FAULTS, WAITS, Cut, Fault, MockServer

ASKED = Request((Message("system", "Be short."), Message("user", "Where is Oru?")), role="extract")
T = TypeVar("T")


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "FIRST_WAIT_S", 0.0)


def numbered(n: int) -> Request:
    return Request((Message("user", f"question {n}"),))


def last_turn(body: object) -> str:
    return str(body["messages"][-1]["content"])  # type: ignore[index]


def run(server: MockServer, act: Callable[[OpenAIEngine], Awaitable[T]], *, timeout: float | None = None) -> T:
    return acted(OpenAIEngine(server.model, server.url, timeout=timeout), act)


def acted(engine: OpenAIEngine, act: Callable[[OpenAIEngine], Awaitable[T]]) -> T:
    """What ``act`` makes of an engine; then the engine is closed."""

    async def acting() -> T:
        try:
            return await act(engine)
        finally:
            await engine.close()

    return asyncio.run(acting())


async def one_try(engine: OpenAIEngine) -> Completion | EngineError:
    (found,) = await engine.generate([ASKED])
    return found


# What goes wrong


@pytest.mark.parametrize("fault", ALL_FAULTS)
def test_every_fault_is_outlived_and_counted(fault: Fault) -> None:
    async def all_of_them(engine: OpenAIEngine) -> Client:
        # Few at once: calls that wait for each other would look as if they hung.
        client = Client(engine, in_flight=8)
        found = await client.complete_all([numbered(n) for n in range(40)])
        assert [c.text for c in found if isinstance(c, Completion)] == [f"question {n}" for n in range(40)]
        return client

    with MockServer(last_turn, fault_rate=0.3, faults=(fault,)) as server:
        account = run(server, all_of_them, timeout=limit(fault)).total()
    assert server.faulted[fault] > 3
    assert account.retries >= server.faulted[fault]
    assert (account.answered, account.failed, account.pending) == (40, 0, 0)
    if fault not in WAITS:  # with its short limit, a busy machine may fail more calls
        assert account.retries == server.faulted[fault]
        assert account.calls == sum(server.asked.values()) == 40 + account.retries
        assert max(server.answered.values()) == 1


def limit(fault: Fault) -> float:
    """Seconds to wait for a reply; only what hangs makes a test wait for so long."""
    return 0.5 if fault in WAITS else 30


@pytest.mark.parametrize("fault", ALL_FAULTS)
def test_a_fault_that_stays_is_an_error_after_so_many_tries(fault: Fault) -> None:
    async def one(engine: OpenAIEngine) -> Client:
        client = Client(engine, tries=3)
        with pytest.raises(EngineError) as caught:
            await client.complete(ASKED)
        assert caught.value.transient
        assert "\n" not in str(caught.value)
        return client

    with MockServer(last_turn, fault_rate=1, faults=(fault,)) as server:
        account = run(server, one, timeout=limit(fault)).total()
    assert (account.calls, account.retries, account.failed, account.pending) == (3, 2, 1, 0)
    assert not server.answered


@pytest.mark.parametrize("status", [400, 403, 404, 422])
def test_what_will_not_pass_is_not_tried_again(status: int) -> None:
    async def one(engine: OpenAIEngine) -> None:
        with pytest.raises(EngineError, match=f"^HTTP {status}: as you wish$"):
            await Client(engine).complete(ASKED)

    with MockServer(last_turn, status=status) as server:
        run(server, one)
    assert sum(server.asked.values()) == 1


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_what_may_pass_is_tried_again(status: int) -> None:
    with MockServer(last_turn, status=status) as server:
        found = run(server, one_try)
    assert isinstance(found, EngineError)
    assert found.transient


def test_a_server_may_say_how_long_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def noted(seconds: float) -> None:
        waits.append(seconds)

    async def one(engine: OpenAIEngine) -> None:
        with pytest.raises(EngineError, match="HTTP 429"):
            await Client(engine, tries=4).complete(ASKED)

    monkeypatch.setattr(client_module, "AsyncRetrying", partial(AsyncRetrying, sleep=noted))
    with MockServer(last_turn, fault_rate=1, faults=("429",), retry_after=7.5) as server:
        run(server, one)
    assert waits == [7.5] * 3


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"null", b"3", b"[]", b"{}", b"<html>", b'"text"', b"\xff", b"[" * 100_000,
        b'{"choices": []}', b'{"choices": [{}]}', b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": {"content": [{"type": "image", "url": "a"}]}}]}',
        b'{"choices": [{"message": {"content": "a"}}], "usage": {"prompt_tokens": NaN}}',
        b'{"choices": [{"message": {"content": "\xff"}}]}',
    ],
)  # fmt: skip
def test_what_is_no_completion_is_a_fault(raw: bytes) -> None:
    async def both(engine: OpenAIEngine) -> Completion | EngineError:
        with pytest.raises(UserError, match="no OpenAI-compatible server") as caught:
            await engine.check()
        assert "\n" not in str(caught.value)
        return await one_try(engine)

    with MockServer(last_turn, raw=raw) as server:
        found = run(server, both)
    assert isinstance(found, EngineError)
    assert found.transient
    assert "unreadable reply" in str(found)


def test_a_completion_may_lack_usage_and_content() -> None:
    async def one(engine: OpenAIEngine) -> Completion | EngineError:
        return await one_try(engine)

    raw = b'{"choices": [{"message": {"content": null}, "finish_reason": "content_filter"}]}'
    with MockServer(last_turn, raw=raw) as server:
        assert run(server, one) == Completion("", ending="refused", reason="it ended with 'content_filter'")


def test_a_reply_that_comes_a_byte_at_a_time_is_a_timeout() -> None:
    async def dripping(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
        try:
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.01)
        except (OSError, asyncio.CancelledError):
            writer.close()

    async def one() -> Completion | EngineError:
        server = await asyncio.start_server(dripping, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        engine = OpenAIEngine("m", f"http://127.0.0.1:{port}/v1", timeout=0.2)
        found = await one_try(engine)
        await engine.close()
        server.close()
        return found

    found = asyncio.run(one())
    assert isinstance(found, EngineError)
    assert (str(found), found.transient) == ("timed out", True)


def test_a_request_that_is_no_json_is_not_sent() -> None:
    asked = replace(ASKED, sampling=Sampling(temperature=float("nan")))

    async def one(engine: OpenAIEngine) -> None:
        with pytest.raises(EngineError, match="can't be sent"):
            await Client(engine).complete(asked)

    with MockServer(last_turn) as server:
        run(server, one)
    assert not server.asked


# What is asked and said


def test_what_a_server_is_asked_and_what_it_says() -> None:
    schema = Schema.from_dict("triples", {"type": "object"})
    request = replace(ASKED, sampling=Sampling(seed=3, stop=("\n",)), schema=schema)

    async def one(engine: OpenAIEngine) -> Completion:
        await engine.check()
        return await Client(engine).complete(request)

    with MockServer(last_turn, keep_bodies=True, finish="length") as server:
        said = run(server, one)
    body, again = server.bodies
    assert again == body | {"max_completion_tokens": 2 * body["max_completion_tokens"]}
    assert body["model"] == "mock"
    assert [m["role"] for m in body["messages"]] == ["system", "user"]
    assert (body["temperature"], body["seed"], body["stop"]) == (0.0, 3, ["\n"])
    assert body["response_format"]["json_schema"] == {"name": "triples", "schema": {"type": "object"}}
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert (said.text, said.fragment) == ("", "Where is Oru?")
    assert said.ending == "cut"
    assert said.usage.prompt > said.usage.cached > 0


def sent_to(server: MockServer, spec: str = "", **sampling: Any) -> dict[str, Any]:
    """The body of one request to a server by its spec, with what stands behind that."""
    return sent(server, replace(ASKED, sampling=Sampling(**sampling)), spec)


def sent(server: MockServer, request: Request, spec: str = "") -> dict[str, Any]:
    async def one(engine: OpenAIEngine) -> Completion | EngineError:
        (found,) = await engine.generate([request])
        return found

    engine = OpenAIEngine.read(f"{server.spec.removeprefix('openai:')}{spec}")
    assert isinstance(acted(engine, one), Completion)
    return server.bodies[-1]


THINK_NOT = {"enable_thinking": False}


@pytest.mark.parametrize(
    ("owner", "spec", "expected"),
    [
        ("vllm", "", THINK_NOT),
        ("sglang", "", THINK_NOT),
        ("llamacpp", "", THINK_NOT),
        ("openai", "", None),
        ("system", "", None),
        ("openai", "?template=on", THINK_NOT),
        ("vllm", "?template=off", None),
    ],
)
def test_template_settings_go_to_servers_that_take_them(owner: str, spec: str, expected: object) -> None:
    strict = expected is None  # they refuse what they don't know, as OpenAI's own does
    with MockServer(last_turn, keep_bodies=True, owner=owner, strict=strict) as server:
        assert sent_to(server, spec).get("chat_template_kwargs") == expected


@pytest.mark.parametrize(
    ("owner", "spec", "listed"),
    [("vllm", "", True), ("vllm", "?template=off", True), ("sglang", "", False), ("openai", "", False)],
)
def test_listed_replies_go_to_servers_that_take_a_list(owner: str, spec: str, listed: bool) -> None:
    """Others are sent the schema that says the same."""
    schema = Schema.from_dict("path", {"enum": [["a"], ["b"]]})
    with MockServer(last_turn, keep_bodies=True, owner=owner, strict=owner == "openai") as server:
        body = sent(server, replace(ASKED, choices=('["a"]', '["b"]'), schema=schema), spec)
        assert "structured_outputs" not in sent(server, replace(ASKED, schema=schema), spec)
    assert body.get("structured_outputs") == ({"choice": ['["a"]', '["b"]']} if listed else None)
    assert ("response_format" in body) is not listed


@pytest.mark.parametrize(("status", "owner"), [(404, "vllm"), (403, "vllm"), (500, "vllm")])
def test_a_server_without_a_list_of_models_gets_no_template_settings(status: int, owner: str) -> None:
    with MockServer(last_turn, keep_bodies=True, models_status=status, owner=owner) as server:
        assert "chat_template_kwargs" not in sent_to(server)
        assert sent_to(server, "?template=on")["chat_template_kwargs"] == THINK_NOT


def test_a_list_of_models_that_does_not_come_now_is_waited_for() -> None:
    """Else half of a run would think, and half of it not."""

    async def one(engine: OpenAIEngine) -> Completion | EngineError:
        found = await one_try(engine)
        assert isinstance(found, EngineError)
        assert found.transient
        server.models_status = 200
        return await one_try(engine)

    with MockServer(last_turn, keep_bodies=True, models_status=503) as server:
        assert isinstance(run(server, one), Completion)
    (body,) = server.bodies
    assert body["chat_template_kwargs"] == THINK_NOT


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("owner", ["vllm", "openai"])
def test_who_is_to_think_is_not_told_not_to(owner: str, effort: Effort) -> None:
    with MockServer(last_turn, keep_bodies=True, owner=owner, strict=True) as server:
        body = sent_to(server, effort=effort)
    assert body["reasoning_effort"] == effort
    assert "chat_template_kwargs" not in body


def test_a_repetition_penalty_is_sent_where_one_is_asked_for() -> None:
    with MockServer(last_turn, keep_bodies=True) as server:
        assert "repetition_penalty" not in sent_to(server)
        assert sent_to(server, repetition_penalty=1.1)["repetition_penalty"] == 1.1


def test_a_spec_says_whether_a_model_may_think() -> None:
    plain, on, off = (OpenAIEngine.read(f"a/b@http://h:1/v1{spec}") for spec in ("", "?template=on", "?template=off"))
    assert {engine.base_url for engine in (plain, on, off)} == {"http://h:1/v1"}
    # Replies that were made before the switch were made with it on: their keys stay.
    assert plain.identity == on.identity == {"engine": "openai", "model": "a/b", "base_url": "http://h:1/v1"}
    assert off.identity == {**on.identity, "template": False}
    assert [one.name for one in (plain, on, off)] == ["openai:a/b", "openai:a/b", "openai:a/b?template=off"]
    with pytest.raises(UserError, match=r"template= 'no' is not known; .*choose from on, off"):
        OpenAIEngine.read("a/b@http://h:1/v1?template=no")


def test_another_query_is_part_of_the_address() -> None:
    address = "https://h/openai?api-version=1"
    assert OpenAIEngine.read(f"m@{address}").base_url == address
    assert OpenAIEngine.read(f"m@{address}?template=off").base_url == address


def test_a_reasoning_model_that_is_cut_says_nothing() -> None:
    with MockServer(lambda _: Cut("")) as server:
        said = run(server, one_try)
    assert isinstance(said, Completion)
    assert (said.text, said.ending) == ("", "thought")


def test_half_surrogates_survive_to_and_fro(tmp_path: Path) -> None:
    asked = Request((Message("user", "a\ud800b 😀 é"),))

    async def one(engine: OpenAIEngine) -> Completion:
        return await Client(engine, ResponseCache(tmp_path / "c.sqlite")).complete(asked)

    with MockServer(lambda _: "c\ud800d 😀", keep_bodies=True) as server:
        said = run(server, one)
        assert run(server, one) == said
    assert said.text == "c\ud800d 😀"
    # Two words for one: a server can't encode the half, so it is asked with U+FFFD.
    assert [last_turn(body) for body in server.bodies] == ["a\ufffdb 😀 é"]


# The key and the address


def test_the_key_is_in_no_error_and_no_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")

    async def one(engine: OpenAIEngine) -> str:
        with pytest.raises(UserError, match="HTTP 401") as refused:
            await Client(engine).complete(ASKED)
        with pytest.raises(UserError, match="set OPENAI_API_KEY") as checked:
            await engine.check()
        return f"{refused.value}{checked.value}{engine.identity}{engine.name}"

    with MockServer(last_turn, key="another") as server:
        assert "sk-secret" not in run(server, one)


def test_a_key_may_end_in_a_line_break(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret\r\n")
    with MockServer(last_turn, key="sk-secret") as server:
        assert isinstance(run(server, one_try), Completion)


@pytest.mark.parametrize("key", ["sk-ü", "sk\nsecret", "\x00"])
def test_a_key_that_no_header_can_hold_is_one_line(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setattr("os.environ", {"OPENAI_API_KEY": key})
    with pytest.raises(UserError, match="OPENAI_API_KEY") as caught:
        OpenAIEngine("m")
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    ["http://", "http://[bad", "http://h:99999/v1", "localhost:8000/v1", "ftp://h/v1",
     "http://a b/v1", "http://é/v1", "http://h/\ud800", "http://h/\x01"],
)  # fmt: skip
def test_a_wrong_address_is_one_line(address: str) -> None:
    with pytest.raises(UserError, match="not a server's address") as caught:
        OpenAIEngine("m", address)
    assert "\n" not in str(caught.value)


def test_an_address_with_a_password_is_refused_and_not_repeated() -> None:
    with pytest.raises(UserError, match="OPENAI_API_KEY") as caught:
        OpenAIEngine("m", "http://user:secret@host/v1")
    assert "secret" not in str(caught.value)


def test_the_address_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://host/v1")
    assert OpenAIEngine("m").identity["base_url"] == "http://host/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    assert OpenAIEngine("m").identity["base_url"] is None


def test_a_server_that_is_not_there_is_one_line() -> None:
    with socket.socket() as taken:  # bound, but it doesn't listen
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"

        async def both() -> Completion | EngineError:
            engine = OpenAIEngine("m", url)
            with pytest.raises(UserError, match="no server answers there") as caught:
                await engine.check()
            assert "\n" not in str(caught.value)
            found = await one_try(engine)
            await engine.close()
            return found

        found = asyncio.run(both())
    assert str(found) == "connection refused"


def test_openai_itself_wants_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UserError, match=r"set OPENAI_API_KEY, or .* openai:m@http://") as caught:
        asyncio.run(OpenAIEngine("m").check())
    assert "serve.sh" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "mend"),
    [
        ("http://127.0.0.1:1/v1", r"\(connection refused\); start one with `scripts/serve.sh m`"),
        ("http://no-such-host.invalid/v1", r"\(no such host\); correct the address"),
    ],
)
def test_where_nobody_answers_the_mend_fits_the_place(url: str, mend: str) -> None:
    async def check() -> None:
        engine = OpenAIEngine("m", url)
        try:
            await engine.check()
        finally:
            await engine.close()

    with pytest.raises(UserError, match=mend):
        asyncio.run(check())


def test_an_address_without_its_path_gets_a_hint() -> None:
    async def one(url: str) -> Completion | EngineError:
        engine = OpenAIEngine("mock", url)
        try:
            return await one_try(engine)
        finally:
            await engine.close()

    with MockServer(last_turn, status=404) as server:
        with_path = asyncio.run(one(server.url))
        without = asyncio.run(one(server.url.removesuffix("/v1")))
    assert str(with_path) == "HTTP 404: as you wish"
    assert str(without) == "HTTP 404: as you wish (the address usually ends in /v1)"


def test_a_model_that_is_not_served_is_one_line() -> None:
    async def check(engine: OpenAIEngine) -> None:
        engine.model = "another"
        with pytest.raises(
            UserError, match=r"lists mock, not this model, and refuses it \(HTTP 404: no such model\)$"
        ):
            await engine.check()

    with MockServer(last_turn, unlisted=()) as server:
        run(server, check)


def test_a_list_of_models_may_be_empty() -> None:
    async def check(engine: OpenAIEngine) -> None:
        await engine.check()

    with MockServer(last_turn, raw=json.dumps({"data": []}).encode()) as server:
        run(server, check)


@pytest.mark.parametrize("module", ["openai", "aiohttp"])
def test_a_missing_extra_says_which(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    engine = OpenAIEngine("m", "http://host/v1")  # for an estimate its name is enough
    for act in (engine.check(), engine.generate([ASKED])):
        with pytest.raises(UserError, match=r"pip install -e '\.\[openai\]'"):
            asyncio.run(act)
