"""How a release asks the models that it names."""

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from builders.verified.teachers import Teachers
from builders.verified.teachers.choice import known_teacher
from releases.stage import Release
from safe_stepwise.engines.base import Allowance
from safe_stepwise.engines.client import Client, ResponseCache, default_cache
from safe_stepwise.open import Opener


def open_teachers(release: Release[Any], spec: str, allowance: Allowance, lists: Path | None = None) -> Teachers:
    """The teachers of a spec; raises as `known_teacher`."""
    asking = {name: getattr(release.options, name) for name in ("cache", "in_flight", "timeout")}
    teachers = known_teacher(spec, **asking, allowance=allowance, lists=lists)
    release.opened.append(teachers)
    return teachers


@contextmanager
def clients_of(release: Release[Any], specs: Iterable[str], allowance: Allowance) -> Iterator[list[Client]]:
    """A client of each spec; all share the replies."""
    options = release.options
    with closing(ResponseCache(options.cache or default_cache())) as cache:
        opened = map(Opener(options.timeout), specs)
        yield [Client(engine, cache, options.in_flight, allowance=allowance) for engine in opened]
