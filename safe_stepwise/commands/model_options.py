"""How a command asks models: the options that all of them share, and what these open."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from safe_stepwise.commands.values import Count, Seconds
from safe_stepwise.engines import client
from safe_stepwise.engines.base import AS_PROMPTED, Allowance, Engine
from safe_stepwise.engines.client import IN_FLIGHT, Client, ResponseCache, default_cache


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """How models are asked: where replies are kept, how many requests wait, for how long, what roles may have."""

    cache: Path | None = None
    in_flight: Count = IN_FLIGHT
    timeout: Seconds | None = None
    allowance: Allowance = AS_PROMPTED

    @property
    def cache_file(self) -> Path:
        """Where replies are kept."""
        return self.cache or default_cache()

    def replies(self) -> closing[ResponseCache]:
        """The replies that are kept, for as long as the context lasts."""
        return closing(ResponseCache(self.cache_file))

    def client(self, engine: Engine, replies: ResponseCache) -> Client:
        """The client of an engine."""
        return Client(engine, replies, self.in_flight, client.TRIES, self.allowance)
