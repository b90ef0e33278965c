from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import pytest
from tenacity import AsyncRetrying, RetryCallState

from safe_stepwise.engines import client as client_module
from safe_stepwise.engines.base import Completion, EngineError, Message, Request, request_key
from safe_stepwise.engines.client import Client, ResponseCache
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.errors import UserError

ASKED = Request((Message("system", "Be short."), Message("user", "Where is Oru?")), role="extract")


def echo(request: Request) -> str:
    return f"said: {request.messages[-1].content}"


def numbered(n: int) -> Request:
    return replace(ASKED, messages=(Message("user", f"question {n}"),))


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "FIRST_WAIT_S", 0.0)


class Failing(MockEngine):
    """Fails with each of some errors in turn, then answers."""

    def __init__(self, *errors: EngineError) -> None:
        super().__init__(echo)
        self.errors = list(errors)
        self.calls = 0

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        self.calls += len(requests)
        await asyncio.sleep(0)
        return [self.errors.pop(0)] if self.errors else await super().generate(requests)


class Waiting(MockEngine):
    """Never answers."""

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        await asyncio.Event().wait()
        raise AssertionError


# The cache


def test_a_stored_reply_is_not_asked_for_again(tmp_path: Path) -> None:
    engine = Failing()
    first = Client(engine, ResponseCache(tmp_path / "c.sqlite"))
    said = asyncio.run(first.complete(ASKED))
    again = Client(engine, ResponseCache(tmp_path / "c.sqlite"))
    assert asyncio.run(again.complete(ASKED)) == said
    assert engine.calls == 1
    assert (again.total().hits, again.total().calls) == (1, 0)


def test_a_reply_is_stored_before_anyone_sees_it() -> None:
    cache = ResponseCache(Path(":memory:"))
    client = Client(MockEngine(echo), cache)

    async def seen(n: int) -> bool:
        await client.complete(numbered(n))
        return cache.get(request_key(client.engine, numbered(n))) is not None

    async def all_seen() -> list[bool]:
        return await asyncio.gather(*map(seen, range(50)))

    assert all(asyncio.run(all_seen()))


def test_a_failure_is_not_stored() -> None:
    cache = ResponseCache(Path(":memory:"))
    client = Client(Failing(EngineError("HTTP 400")), cache)
    with pytest.raises(EngineError):
        asyncio.run(client.complete(ASKED))
    assert len(cache) == 0


def test_a_cache_that_cannot_be_written_stops_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: ResponseCache, found: object) -> None:
        raise UserError("c.sqlite: cannot be written (disk full)")

    monkeypatch.setattr(ResponseCache, "store", full)
    client = Client(MockEngine(echo), ResponseCache(Path(":memory:")))
    with pytest.raises(UserError, match="disk full"):
        asyncio.run(client.complete_all([ASKED, ASKED, numbered(1)]))


# Many at once


def test_what_many_ask_at_once_costs_one_call() -> None:
    engine = Failing()
    client = Client(engine)

    async def all_at_once() -> list[Completion | EngineError]:
        return await client.complete_all([ASKED] * 100)

    found = asyncio.run(all_at_once())
    assert engine.calls == 1
    assert found == [found[0]] * 100
    assert (client.total().calls, client.total().hits) == (1, 99)


def test_a_shared_failure_reaches_all_and_the_next_may_try_again() -> None:
    engine = Failing(EngineError("HTTP 400"))
    client = Client(engine)

    async def twice() -> tuple[list[Completion | EngineError], Completion]:
        return await client.complete_all([ASKED] * 3), await client.complete(ASKED)

    failed, found = asyncio.run(twice())
    assert [str(error) for error in failed] == ["HTTP 400"] * 3
    assert found.text.startswith("said")
    # What three asked was one call that failed: no reply, so nobody had it for nothing.
    account = client.total()
    assert (account.calls, account.failed, account.answered, account.hits) == (2, 1, 1, 0)


@pytest.mark.parametrize("cancelled", [0, 1])
def test_one_who_gives_up_leaves_the_others_their_reply(cancelled: int) -> None:
    client = Client(Failing(EngineError("HTTP 500", transient=True)))

    async def two() -> list[object]:
        asking = [asyncio.ensure_future(client.complete(ASKED)) for _ in range(2)]
        await asyncio.sleep(0)
        asking[cancelled].cancel()
        return await asyncio.gather(*asking, return_exceptions=True)

    found = asyncio.run(two())
    assert isinstance(found[cancelled], asyncio.CancelledError)
    assert isinstance(found[1 - cancelled], Completion)
    account = client.total()
    assert (account.calls, account.retries, account.answered) == (2, 1, 1)


def test_what_nobody_waited_for_is_asked_for_anew() -> None:
    cache = ResponseCache(Path(":memory:"))
    engine = Failing(EngineError("HTTP 500", transient=True))
    client = Client(engine, cache)

    async def given_up_and_asked_again() -> Completion:
        asking = asyncio.ensure_future(client.complete(ASKED))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert len(cache) == 0
        return await client.complete(ASKED)

    assert asyncio.run(given_up_and_asked_again()).text.startswith("said")
    assert len(cache) == 1
    assert client.total().pending == 0


def test_a_failure_that_nobody_waits_for_any_more_is_not_printed() -> None:
    async def give_up() -> list[object]:
        told: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        asking = asyncio.ensure_future(Client(Failing(EngineError("no"))).complete(ASKED))
        await asyncio.sleep(0)
        asking.cancel()
        for _ in range(20):
            await asyncio.sleep(0)
        gc.collect()
        return told

    assert asyncio.run(give_up()) == []


def test_what_is_under_way_is_owed() -> None:
    client = Client(Failing(*(EngineError("HTTP 400") for _ in range(2))), in_flight=2)

    async def watched() -> list[int]:
        asking = asyncio.ensure_future(client.complete_all([numbered(n) for n in range(5)]))
        while not client.total().pending:
            await asyncio.sleep(0)
        owed = client.total().pending
        await asking
        return [owed, client.total().pending]

    assert asyncio.run(watched()) == [5, 0]
    assert (client.total().answered, client.total().failed) == (3, 2)


def test_accounts_are_kept_by_role() -> None:
    client = Client(MockEngine(echo))
    by_role = [replace(numbered(n), role=role) for role in ("extract", "judge") for n in range(3)]
    asyncio.run(client.complete_all(by_role))
    assert {role: account.calls for role, account in client.accounts.items()} == {"extract": 3, "judge": 3}
    assert client.total().calls == 6
    assert client.total().prompt == sum(account.prompt for account in client.accounts.values()) > 0


def test_one_who_gives_up_on_many_is_not_kept_waiting() -> None:
    client = Client(Waiting(echo))

    async def cancelled() -> None:
        asking = asyncio.ensure_future(client.complete_all([numbered(n) for n in range(5)]))
        await asyncio.sleep(0)
        asking.cancel()
        await asking

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())


def test_no_more_than_agreed_are_under_way() -> None:
    running, most = 0, 0

    class Counting(MockEngine):
        async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.05)  # longer than a busy machine takes to send the others
            running -= 1
            return await super().generate(requests)

    for agreed in (7, 20):
        most = 0
        client = Client(Counting(echo), in_flight=agreed)
        asyncio.run(client.complete_all([numbered(n) for n in range(50)]))
        assert most == agreed


def test_few_are_sent_until_one_is_answered() -> None:
    client = Client(Waiting(echo))

    async def begun() -> int:
        asking = asyncio.ensure_future(client.complete_all([numbered(n) for n in range(100)]))
        for _ in range(1000):
            await asyncio.sleep(0)
        asking.cancel()
        return client.total().calls

    assert asyncio.run(begun()) == client_module.FIRST_IN_FLIGHT


# Retries


def test_tries_are_bounded_and_counted() -> None:
    errors = [EngineError("HTTP 500", transient=True) for _ in range(20)]
    client = Client(Failing(*errors), tries=5)
    with pytest.raises(EngineError, match="HTTP 500"):
        asyncio.run(client.complete(ASKED))
    account = client.accounts["extract"]
    assert (account.calls, account.retries, account.failed, account.pending) == (5, 4, 1, 0)


def test_what_will_not_pass_is_not_tried_again() -> None:
    engine = Failing(EngineError("HTTP 400"))
    with pytest.raises(EngineError, match="HTTP 400"):
        asyncio.run(Client(engine).complete(ASKED))
    assert engine.calls == 1


@pytest.mark.parametrize(("asked", "waited"), [(None, 0.0), (7.0, 7.0), (1e9, client_module.LONGEST_WAIT_S)])
def test_the_servers_wish_to_wait_is_honoured(asked: float | None, waited: float) -> None:
    state = RetryCallState(AsyncRetrying(), None, (), {})
    error = EngineError("HTTP 429", transient=True, retry_after=asked)
    state.set_exception((EngineError, error, None))
    assert client_module._back_off(state) == waited


def test_a_hopeless_run_is_given_up() -> None:
    engine = Failing(*(EngineError("HTTP 401: who are you?") for _ in range(500)))
    client = Client(engine, in_flight=1)
    with pytest.raises(UserError, match="HTTP 401: who are you"):
        asyncio.run(client.complete_all([numbered(n) for n in range(500)]))
    assert engine.calls < 60  # those that come after are not even tried


def test_sharing_a_failure_is_no_success() -> None:
    engine = Failing(*(EngineError("HTTP 401") for _ in range(500)))
    asked = [numbered(n // 2) for n in range(1000)]
    with pytest.raises(UserError, match="HTTP 401"):
        asyncio.run(Client(engine, in_flight=1).complete_all(asked))


def test_a_few_failures_are_no_hopeless_run() -> None:
    engine = Failing(EngineError("HTTP 400"), EngineError("HTTP 400"))
    found = asyncio.run(Client(engine).complete_all([numbered(n) for n in range(5)]))
    assert sum(isinstance(one, EngineError) for one in found) == 2


def test_faulty_engine_loses_nothing() -> None:
    chance = Random(1)

    def echo_or_fail(request: Request) -> str:
        if chance.random() < 0.2:
            raise EngineError("HTTP 500", transient=True)
        return echo(request)

    client = Client(MockEngine(echo_or_fail))
    found = asyncio.run(client.complete_all([numbered(n) for n in range(500)]))
    assert [c.text for c in found if isinstance(c, Completion)] == [f"said: question {n}" for n in range(500)]
    assert client.total().retries > 50


@dataclass
class Hanging:
    """Answers nothing until it is let go."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    calls: int = 0
    simulated = True
    name = "hanging"
    identity = {"engine": "hanging"}  # noqa: RUF012

    async def check(self) -> None: ...

    async def close(self) -> None: ...

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        self.calls += 1
        await self.gate.wait()
        return [Completion("Oru")]


def test_a_call_that_nobody_waits_for_gives_its_place_back() -> None:
    async def going() -> None:
        engine = Hanging()
        client = Client(engine, in_flight=1)
        first, again = (asyncio.ensure_future(client.complete(numbered(1))) for _ in range(2))
        await asyncio.sleep(0.01)
        first.cancel()
        await asyncio.sleep(0.01)
        assert not again.done()  # another waits for the same
        again.cancel()
        await asyncio.gather(first, again, return_exceptions=True)
        await asyncio.sleep(0.01)
        assert client.total().pending == 0
        # Whoever comes while the call is being ended is not ended with it.
        late = asyncio.ensure_future(client.complete(numbered(2)))
        await asyncio.sleep(0.01)
        late.cancel()
        anew = asyncio.ensure_future(client.complete(numbered(2)))
        engine.gate.set()
        assert (await asyncio.wait_for(anew, 10)).text == "Oru"
        assert engine.calls == 3

    asyncio.run(going())
