"""The options of every command that sends requests to models, and the cache and clients that they open."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from safe_stepwise.commands.values import Count, Seconds
from safe_stepwise.engines import client
from safe_stepwise.engines.base import AS_PROMPTED, Allowance, Engine
from safe_stepwise.engines.client import IN_FLIGHT, Client, ResponseCache, default_cache


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The file of replies, the requests under way, the seconds of one call, and the allowance by role."""

    cache: Path | None = None
    in_flight: Count = IN_FLIGHT
    timeout: Seconds | None = None
    allowance: Allowance = AS_PROMPTED

    @property
    def cache_file(self) -> Path:
        """The file of the response cache: ``cache``, or the user's own."""
        return self.cache or default_cache()

    def replies(self) -> closing[ResponseCache]:
        """Open the response cache, and close it after the context; raises ``UserError`` if it can't be used."""
        return closing(ResponseCache(self.cache_file))

    def client(self, engine: Engine, replies: ResponseCache) -> Client:
        """Make a client of an engine, with the response cache ``replies`` and the limits of these options."""
        return Client(engine, replies, self.in_flight, client.TRIES, self.allowance)
