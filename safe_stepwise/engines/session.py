"""The engines of one computation, by who they play: opened, checked and closed together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from safe_stepwise.engines.base import Engine
from safe_stepwise.engines.cache import ResponseCache, default_cache
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.spec import open_engine
from safe_stepwise.errors import UserError


@asynccontextmanager
async def opened(
    specs: Mapping[str, str], cache: str | Path | None = None
) -> AsyncIterator[Mapping[str, Client]]:
    """A client for each who has a spec; equal specs share an engine, all share one cache.

    ``cache`` is the file of replies, if not the user's own. Raises ``UserError``, with the name of
    who it concerns, for a spec that can't be read, and for an engine that can't work.
    """
    engines: dict[str, Engine] = {}
    replies: ResponseCache | None = None
    try:
        for who, spec in specs.items():
            try:
                if spec not in engines:
                    engines[spec] = open_engine(spec)
                    await engines[spec].check()
            except UserError as error:
                raise UserError(f"{who}: {error}") from None
        replies = ResponseCache(Path(cache) if cache else default_cache())
        yield {who: Client(engines[spec], replies) for who, spec in specs.items()}
    finally:
        for engine in engines.values():
            await engine.close()
        if replies is not None:
            replies.close()
