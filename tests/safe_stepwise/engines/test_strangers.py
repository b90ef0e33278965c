"""A server that means harm, or is broken: what it says is bounded, and our key stays ours."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from safe_stepwise.engines import client as client_module
from safe_stepwise.engines import openai
from safe_stepwise.engines.base import Completion, EngineError, Request
from safe_stepwise.engines.client import Client, ResponseCache, check
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.engines.openai import OpenAIEngine
from safe_stepwise.errors import UserError
from safe_stepwise.metric.compute import answers_given
from safe_stepwise.open import Opener
from safe_stepwise.records import Usage
from safe_stepwise.store import progress
from tests.safe_stepwise.engines.test_openai import acted, last_turn, numbered
from tests.servers.openai_server import MockServer

KEY = "sk-proj-Zq9/8w+" + "aB3_xY7" * 5
ROOT = Path(__file__).parents[3]
T = TypeVar("T")


@pytest.fixture(autouse=True)
def key_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(client_module, "FIRST_WAIT_S", 0.0)


def run(url: str, act: Callable[[OpenAIEngine], Awaitable[T]], timeout: float | None = None) -> T:
    return acted(OpenAIEngine("mock", url, timeout=timeout), act)


async def asked(engine: OpenAIEngine) -> Completion | EngineError:
    (found,) = await Client(engine, tries=1).complete_all([numbered(0)])
    return found


def answering(head: str, body: bytes = b"") -> bytes:
    return f"HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


@pytest.fixture
def raw() -> Callable[..., Any]:
    """What becomes of a server that answers all requests with these bytes."""

    def served(answer: bytes, act: Callable[[OpenAIEngine], Awaitable[T]]) -> T:
        async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            try:
                await writer.drain()
                await reader.read()
            except OSError:
                pass
            writer.close()

        async def acting() -> T:
            server = await asyncio.start_server(answers, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            engine = OpenAIEngine("mock", f"http://127.0.0.1:{port}/v1", timeout=20)
            try:
                return await act(engine)
            finally:
                await engine.close()
                server.close()

        return asyncio.run(acting())

    return served


# The key


@pytest.mark.parametrize("status", [400, 401, 403, 404, 418, 500])
def test_a_key_that_a_server_repeats_is_in_no_error(status: int) -> None:
    async def said(engine: OpenAIEngine) -> str:
        try:
            return str(await asked(engine))
        except UserError as error:
            return str(error)

    with MockServer(last_turn, status=status, echo=True) as server:
        told = run(server.url, said)
    assert f"HTTP {status}: as you wish (you sent Bearer [redacted]" in told


@pytest.mark.parametrize("status", [200, 401, 500])
def test_a_key_in_the_list_of_models_is_not_shown(status: int) -> None:
    async def said(engine: OpenAIEngine) -> str:
        engine.model = "another"
        try:
            await check(engine)
        except UserError as error:
            return str(error)
        return ""

    with MockServer(last_turn, models_status=status, echo=True, unlisted=()) as server:
        told = run(server.url, said)
    assert KEY not in told
    assert ("[redacted]" in told) == (status == 200)


def test_a_key_in_a_reply_is_in_no_completion_and_no_cache(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"

    async def said(engine: OpenAIEngine) -> str:
        cache = ResponseCache(path)
        found = await Client(engine, cache).complete(numbered(0))
        cache.close()
        return found.text

    with MockServer(last_turn, echo=True) as server:
        assert run(server.url, said) == "question 0 (you sent Bearer [redacted])"
    assert KEY.encode() not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_no_engine_can_forget_it(tmp_path: Path) -> None:
    class Careless(MockEngine):
        async def check(self) -> None:
            raise UserError(f"no model: {KEY}")

        async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
            return [EngineError(f"{KEY}\x1b[31m\ud800" + "x" * 9999) for _ in requests]

    engine = Careless(lambda _: "")
    with pytest.raises(EngineError) as failed:
        asyncio.run(Client(engine).complete(numbered(0)))
    assert str(failed.value).startswith(r"[redacted]\x1b[31m\ud800x")
    assert len(str(failed.value)) == 300
    with pytest.raises(UserError, match=r"^no model: \[redacted\]$"):
        asyncio.run(check(engine))


def test_nobody_goes_past_the_gate() -> None:
    """Engines are checked, and asked, through `client` alone, which keeps keys to itself."""
    direct = re.compile(r"engine\.(check|generate)\(")
    for package in ("safe_stepwise", "builders", "evaluators", "releases", "scripts", "trainers"):
        for file in (ROOT / package).rglob("*.py"):
            if file.name != "client.py":
                assert not direct.search(file.read_text("utf-8")), file


# Redirects


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_the_key_follows_no_redirect(raw: Callable[..., Any], status: int) -> None:
    async def both(engine: OpenAIEngine) -> str:
        with pytest.raises(UserError, match=r"redirects to http://127.* name the address"):
            await check(engine)
        return str(await asked(engine))

    with MockServer(last_turn) as other:
        moved = answering(f"{status} Moved\r\nlocation: {other.url}/chat/completions?k={KEY}")
        told = raw(moved, both)
        assert not other.calls
    assert told.startswith(f"HTTP {status}: redirects to http://127.0.0.1")
    assert KEY not in told


def test_a_redirect_to_itself_is_one_request() -> None:
    with MockServer(last_turn, fault_rate=1, faults=("redirect",)) as server:
        assert "redirects to /v1" in str(run(server.url, asked))
    assert server.calls == 1


# Refusals


def test_a_key_that_is_refused_ends_the_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def many(engine: OpenAIEngine) -> None:
        client = Client(engine)
        with pytest.raises(UserError, match="key was refused; set OPENAI_API_KEY, and run the same"):
            await client.complete_all([numbered(n) for n in range(300)])
        with pytest.raises(UserError, match="key was refused"):
            await client.complete(numbered(300))
        await asyncio.sleep(0.1)  # whoever was waiting for a place

    with MockServer(last_turn, key="another") as server:
        run(server.url, many)
        assert server.refused <= 8


def test_what_is_forbidden_three_times_and_never_answered_ends_the_run() -> None:
    async def many(engine: OpenAIEngine) -> None:
        with pytest.raises(UserError, match=r"the first \d+ requests failed.*HTTP 403"):
            await Client(engine).complete_all([numbered(n) for n in range(300)])

    with MockServer(last_turn, status=403) as server:
        run(server.url, many)
    assert server.calls <= 3 + 8


def test_one_that_is_forbidden_is_for_what_it_says() -> None:
    class Moderated(MockEngine):
        async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
            if last_turn({"messages": [{"content": requests[0].messages[-1].content}]})[-1] == "0":
                return [EngineError("HTTP 403: flagged", refused=True)]
            return await super().generate(requests)

    client = Client(Moderated(lambda _: "fine"), in_flight=1)
    found = asyncio.run(client.complete_all([numbered(n) for n in range(100)]))
    assert sum(isinstance(one, EngineError) for one in found) == 10


# Size and shape


@pytest.mark.parametrize("fault", ["huge", "bomb"])
def test_a_reply_beyond_the_limit_is_a_fault_that_may_pass(fault: Any) -> None:
    async def one(engine: OpenAIEngine) -> int:
        client = Client(engine, tries=3)
        with pytest.raises(EngineError, match="the reply is longer than 8 MB") as caught:
            await client.complete(numbered(0))
        assert caught.value.transient
        return client.total().calls

    with MockServer(last_turn, fault_rate=1, faults=(fault,)) as server:
        assert run(server.url, one) == 3


@pytest.mark.parametrize("size", [1000, 100_000, 262_144])
def test_a_reply_within_the_limit_is_whole(size: int) -> None:
    with MockServer(lambda _: "x" * size) as server:
        found = run(server.url, asked)
    assert isinstance(found, Completion)
    assert len(found.text) == size


@pytest.mark.parametrize(
    "body", [b"x" * 10_000_000, b"[" * 10_000_000, b'{"error": {"message": "a"}}' + b" " * 10_000_000]
)
def test_an_error_keeps_its_status_however_long_it_is(raw: Callable[..., Any], body: bytes) -> None:
    found = raw(answering("404 No\r\ncontent-type: text/plain; charset=punycode", body), asked)
    assert str(found).startswith("HTTP 404")
    assert len(str(found)) < 400


def test_a_list_of_models_has_the_limit_too(raw: Callable[..., Any]) -> None:
    async def listed(engine: OpenAIEngine) -> None:
        with pytest.raises(UserError, match="no OpenAI-compatible server"):
            await check(engine)

    names = json.dumps({"data": [{"id": "m" * 9_000_000}]}).encode()
    raw(answering("200 OK", names), listed)


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        ({"prompt_tokens": 10**30, "completion_tokens": 7}, Usage(0, 0, 7)),
        ({"prompt_tokens": -5, "completion_tokens": -1}, Usage()),
        ({"prompt_tokens": "12", "completion_tokens": True}, Usage()),
        ({"prompt_tokens": 1.5, "completion_tokens": [3]}, Usage()),
        ({"prompt_tokens": 4, "prompt_tokens_details": {"cached_tokens": 9}}, Usage(4, 4, 0)),
        ({"prompt_tokens": 4, "prompt_tokens_details": [1]}, Usage(4, 0, 0)),
        ([1], Usage()),
        ("many", Usage()),
    ],
)
def test_what_is_no_count_of_tokens_counts_nothing(usage: object, read: Usage, tmp_path: Path) -> None:
    async def counted(engine: OpenAIEngine) -> tuple[Usage, int]:
        client = Client(engine, ResponseCache(tmp_path / "replies.sqlite"))
        found = await client.complete(numbered(0))
        assert await client.complete(numbered(0)) == found
        return found.usage, client.total().prompt

    with MockServer(last_turn, usage=usage) as server:
        assert run(server.url, counted) == (read, read.prompt)


# Time


def test_a_check_that_drips_has_an_end(raw: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai, "CHECK_TIMEOUT_S", 0.3)

    async def dripping(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
        try:
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.01)
        except (OSError, asyncio.CancelledError):
            writer.close()

    async def one() -> None:
        server = await asyncio.start_server(dripping, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        engine = OpenAIEngine("m", f"http://127.0.0.1:{port}/v1")
        with pytest.raises(UserError, match=r"no server answers there \(timed out\)"):
            await check(engine)
        await engine.close()
        server.close()

    asyncio.run(one())


def test_a_limit_reaches_the_engines_that_wait_for_a_server() -> None:
    engine = Opener(1.5)("openai:m@http://h/v1")
    assert isinstance(engine, OpenAIEngine)
    assert engine.timeout == 1.5
    assert Opener(1.5) == Opener(1.5)
    assert Opener(1.5)("symbolic").name.startswith("symbolic")


def test_a_long_wait_is_told_with_the_last_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_WAITS", set())  # none of those that another test left behind
    monkeypatch.setattr(progress, "SILENT_S", 0.2)
    monkeypatch.setattr(client_module, "FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(client_module, "LONGEST_WAIT_S", 0.01)

    class Slow(MockEngine):
        async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
            if not told():
                await asyncio.sleep(0)
                return [EngineError(f"HTTP 503: {KEY}", transient=True)]
            return await super().generate(requests)

    def told() -> list[str]:
        lines.extend(capsys.readouterr().err.splitlines())
        return lines

    lines: list[str] = []
    client = Client(Slow(lambda _: "at last"), tries=10**9)
    assert asyncio.run(client.complete(numbered(0))).text == "at last"
    line = told()[0]
    assert re.fullmatch(r"mock:.*: waiting for a reply since \d+ s; the last error: HTTP 503: \[redacted\]", line)


def test_a_wait_is_told_after_ever_longer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    monkeypatch.setattr(progress, "_start_watching", lambda: None)
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    wait = progress.Wait(lambda seconds: f"{seconds} s")
    with wait:
        for second in range(100):
            now = float(second)
            wait.warn_if_long()
    wait.warn_if_long()
    assert capsys.readouterr().err.split("\n") == ["10 s", "20 s", "40 s", "80 s", ""]


def test_a_long_check_is_told_though_it_blocks_the_loop(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_WAITS", set())
    monkeypatch.setattr(progress, "SILENT_S", 0.1)
    lines: list[str] = []

    class Loading(MockEngine):
        async def check(self) -> None:
            while not lines:
                time.sleep(0.05)
                lines.extend(capsys.readouterr().err.splitlines())

    asyncio.run(check(Loading(lambda _: "")))
    assert "waiting for the model since" in lines[0]


# The file of replies


@pytest.mark.parametrize(
    "row",
    [
        ("[1]", "stop", 1, 1, 1),
        ("null", "stop", 1, 1, 1),
        ("[" * 100_000, "stop", 1, 1, 1),
        (b'"bytes"', "stop", 1, 1, 1),
        ('"text"', "because", 1, 1, 1),
        ('"text"', 3, 1, 1, 1),
        ('"text"', "stop", "many", 1, 1),
        ('"text"', "stop", 1, -1, 1),
        ('"text"', "stop", 1, 1, 1.5),
    ],
)
def test_a_row_of_the_cache_that_is_no_reply_is_one_line(tmp_path: Path, row: tuple[object, ...]) -> None:
    path = tmp_path / "replies.sqlite"
    ResponseCache(path).close()
    with sqlite3.connect(path) as db:
        db.execute("insert into completions values ('key', ?, ?, ?, ?, ?)", row)
    with pytest.raises(UserError, match=r"replies\.sqlite: cannot be read .*--cache") as caught:
        ResponseCache(path).get("key")
    assert len(str(caught.value)) < 400


def test_a_cache_that_is_a_loop_of_links_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for path in (tmp_path / "a", tmp_path / "a" / "replies.sqlite"):
        with pytest.raises(UserError, match="choose another --cache"):
            ResponseCache(path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_cache_that_was_cut_off_is_one_line(tmp_path: Path, share: float) -> None:
    path = tmp_path / "replies.sqlite"
    cache = ResponseCache(path)
    cache.store([(f"{n}", Completion("x" * 1000)) for n in range(200)])
    cache.close()
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(UserError, match=r"replies\.sqlite: cannot be .*choose another --cache"):
        [ResponseCache(path).get(f"{n}") for n in range(200)]


# The metric


def test_the_metric_takes_a_limit_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("safe_stepwise.open.Client", partial(Client, tries=1))
    cache = tmp_path / "replies.sqlite"
    with MockServer(last_turn, fault_rate=1, faults=("drip",)) as server, pytest.raises(UserError, match="timed out"):
        answers_given(["a"], [["b"]], benchmark="musique", judge=server.spec, timeout=0.5, cache=cache)
