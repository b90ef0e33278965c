"""Engines opened together: equal specs share one, a mistake names whom it concerns, all close."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import safe_stepwise.open as session
from safe_stepwise.errors import UserError
from safe_stepwise.players.symbolic import Rates, SymbolicEngine


class Noting(SymbolicEngine):
    """Keeps what was opened and closed; ``bad`` can't work."""

    opened: list[str]
    closed: list[str]

    def __init__(self, spec: str) -> None:
        super().__init__({}, Rates())
        self.spec = spec
        self.opened.append(spec)

    async def check(self) -> None:
        if self.spec == "bad":
            raise UserError("no such model")

    async def close(self) -> None:
        self.closed.append(self.spec)


@pytest.fixture(autouse=True)
def noting(monkeypatch: pytest.MonkeyPatch) -> None:
    Noting.opened, Noting.closed = [], []
    monkeypatch.setattr(session, "open_engine", Noting)


def test_equal_specs_share_an_engine_and_all_share_a_cache(tmp_path: Path) -> None:
    async def look() -> None:
        specs = {"generator": "a", "verifier": "a", "judge": "b"}
        async with session.open_clients(specs, tmp_path / "replies.sqlite") as clients:
            generator, verifier, judge = (clients[who] for who in specs)
            assert generator is not verifier  # or the method would be self-verification
            assert generator.engine is verifier.engine is not judge.engine
            assert generator.cache is judge.cache is not None
            assert Noting.closed == []

    asyncio.run(look())
    assert Noting.opened == Noting.closed == ["a", "b"]
    assert (tmp_path / "replies.sqlite").is_file()


def test_a_mistake_names_whom_it_concerns_and_leaves_nothing_open(tmp_path: Path) -> None:
    async def look() -> None:
        async with session.open_clients({"generator": "a", "judge": "bad"}, tmp_path / "replies.sqlite"):
            raise AssertionError("it opened")

    with pytest.raises(UserError, match="judge: no such model"):
        asyncio.run(look())
    assert Noting.opened == Noting.closed == ["a", "bad"]
    assert not list(tmp_path.iterdir())


def test_the_users_own_cache_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAFE_STEPWISE_CACHE", str(tmp_path / "own" / "replies.sqlite"))

    async def look() -> None:
        async with session.open_clients({"judge": "a"}):
            pass

    asyncio.run(look())
    assert (tmp_path / "own" / "replies.sqlite").is_file()
