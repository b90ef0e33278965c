"""How a release asks the models that it names; no command itself."""

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from safe_stepwise.engines.base import AS_PROMPTED, Allowance
from safe_stepwise.engines.client import Client, ResponseCache, default_cache
from safe_stepwise.open import Opener


@dataclass(frozen=True, slots=True)
class Asking:
    """The file of replies, how many requests wait, seconds for a call, what roles are allowed."""

    cache: Path | None
    in_flight: int
    timeout: float | None
    allowance: Allowance = AS_PROMPTED

    @contextmanager
    def clients(self, specs: Iterable[str], roles: Iterable[str]) -> Iterator[list[Client]]:
        """A client of each spec, for requests of some roles; all share the replies."""
        allowance = self.allowance.only([*roles])
        with closing(ResponseCache(self.cache or default_cache())) as cache:
            opened = map(Opener(self.timeout), specs)
            yield [Client(engine, cache, self.in_flight, allowance=allowance) for engine in opened]
