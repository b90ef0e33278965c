"""A reply that was cut off before anything could be read: asked again, and never final."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from safe_stepwise.engines.base import (
    AS_PROMPTED,
    Allowance,
    Completion,
    EngineError,
    Message,
    Request,
    Sampling,
    completion,
)
from safe_stepwise.engines.client import Client, ResponseCache
from safe_stepwise.errors import UserError
from safe_stepwise.records import Usage

ASKED = Request((Message("user", "Where is Oru?"),), Sampling(max_tokens=10), role="path")
Said = Callable[[Request], Completion | EngineError]


class Model:
    """Says what a function of the request makes it say."""

    name = "model"

    def __init__(self, said: Said, simulated: bool = False) -> None:
        self.identity: Mapping[str, Any] = {"engine": "model"}
        self.said = said
        self.simulated = simulated
        self.limits: list[int] = []

    async def check(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        self.limits += [request.sampling.max_tokens for request in requests]
        return [self.said(request) for request in requests]


def cut(text: str = "", tokens: int = 10) -> Completion:
    return completion(text, Usage(5, 2, tokens), "length")


def needs(tokens: int, text: str = "Marn") -> Said:
    """Says its text in so many tokens, and nothing before."""

    def said(request: Request) -> Completion:
        limit = request.sampling.max_tokens
        if limit < tokens:
            return cut("", limit)
        return Completion(text, Usage(5, 4, tokens))

    return said


def asking(model: Model, cache: ResponseCache | None = None, allowance: Allowance = AS_PROMPTED) -> Client:
    kept = ResponseCache(Path(":memory:")) if cache is None else cache
    return Client(model, kept, allowance=allowance)


def test_it_is_asked_again_with_twice_the_room_and_paid_for_in_full() -> None:
    model, cache = Model(needs(15)), ResponseCache(Path(":memory:"))
    client = asking(model, cache)
    said = asyncio.run(client.complete(ASKED))
    assert model.limits == [10, 20]
    assert said == Completion("Marn", Usage(10, 6, 25))
    account = client.accounts["path"]
    assert (account.calls, account.retries, account.answered, account.failed) == (2, 1, 1, 0)
    assert (account.prompt, account.cached, account.completion) == (10, 6, 25)
    again = asking(model, cache)
    assert asyncio.run(again.complete(ASKED)) == said
    more = replace(ASKED, sampling=Sampling(max_tokens=20))
    assert asyncio.run(again.complete(more)) == Completion("Marn", Usage(5, 4, 15))
    assert (model.limits, again.total().hits) == ([10, 20], 2)


def test_cut_again_it_is_a_failure_that_no_cache_keeps() -> None:
    model, cache = Model(needs(50)), ResponseCache(Path(":memory:"))
    client = asking(model, cache)
    with pytest.raises(EngineError, match=r"cut at 20 tokens .* raise --max-tokens path=N above 20"):
        asyncio.run(client.complete(ASKED))
    assert len(cache) == 0
    account = client.accounts["path"]
    assert (account.calls, account.retries, account.answered, account.failed) == (2, 1, 0, 1)
    assert account.completion == 30
    model.said = needs(3)
    assert asyncio.run(client.complete(ASKED)).text == "Marn"
    assert model.limits == [10, 20, 10]


def test_what_breaks_off_is_given_back_as_it_is_and_never_read_or_kept() -> None:
    for text in ("Step 1: Oru li", '{"error_type": "Correct", "diagnosis": "Yes.", "guidance": ""}'):
        model, cache = Model(lambda _, text=text: cut(text)), ResponseCache(Path(":memory:"))  # type: ignore[misc]
        client = asking(model, cache)
        for _ in range(2):
            reply = asyncio.run(client.complete(ASKED))
            assert (reply.text, reply.fragment, reply.ending) == ("", text, "cut")
        assert (model.limits, len(cache)) == ([10, 20, 10, 20], 0)
        assert client.accounts["path"].completion == 40


def test_an_empty_reply_that_ended_by_itself_is_the_models_word() -> None:
    model = Model(lambda _: Completion(""))
    assert asyncio.run(asking(model).complete(ASKED)) == Completion("")
    assert model.limits == [10]


def test_a_server_that_has_no_such_room_says_so() -> None:
    def said(request: Request) -> Completion | EngineError:
        return cut() if request.sampling.max_tokens == 10 else EngineError("HTTP 400: too large")

    with pytest.raises(EngineError, match=r"^cut at 10 tokens; with 20: HTTP 400: too large$"):
        asyncio.run(asking(Model(said)).complete(ASKED))


def test_many_who_ask_share_the_second_call_too() -> None:
    model = Model(needs(15))
    found = asyncio.run(asking(model).complete_all([ASKED] * 9))
    assert model.limits == [10, 20]
    assert {one.text for one in found if isinstance(one, Completion)} == {"Marn"}


def test_a_limit_raised_for_a_few_costs_no_call_for_the_others() -> None:
    wider = Allowance.by_role({"path": 50})
    model, cache = Model(needs(3)), ResponseCache(Path(":memory:"))
    asyncio.run(asking(model, cache).complete(ASKED))
    assert asyncio.run(asking(model, cache, wider).complete(ASKED)).text == "Marn"
    assert model.limits == [10]
    narrower = asking(model, cache, Allowance.by_role({"path": 5}))
    asyncio.run(narrower.complete(ASKED))
    harder = asking(model, cache, Allowance.by_role({"path": 50}, {"path": "high"}))
    asyncio.run(harder.complete(ASKED))
    assert model.limits == [10, 5, 50]


def test_what_was_cut_in_less_room_is_asked_for_in_more() -> None:
    model, cache = Model(lambda _: cut("Mar")), ResponseCache(Path(":memory:"))
    asyncio.run(asking(model, cache).complete(ASKED))
    model.said = needs(3)
    wider = asking(model, cache, Allowance.by_role({"path": 50}))
    assert asyncio.run(wider.complete(ASKED)).text == "Marn"
    assert model.limits == [10, 20, 50]


def test_a_player_draws_anew_with_another_limit() -> None:
    """What it says hangs on its request's key: kept replies must not mix with new ones."""
    model, cache = Model(needs(3), simulated=True), ResponseCache(Path(":memory:"))
    asyncio.run(asking(model, cache).complete(ASKED))
    asyncio.run(asking(model, cache, Allowance.by_role({"path": 50})).complete(ASKED))
    assert model.limits == [10, 50]


def test_an_effort_that_no_model_makes_is_one_line() -> None:
    client = asking(Model(needs(3), simulated=True), None, Allowance.by_role({}, {"path": "low"}))
    with pytest.raises(UserError, match=r"model: no model thinks there; leave out --reasoning-eff"):
        asyncio.run(client.complete(ASKED))
    assert asyncio.run(client.complete(replace(ASKED, role="glean"))).text == "Marn"
