"""A model in memory that engines share, each with an adapter of its own or with none."""

import asyncio
from collections.abc import Iterator
from typing import Any, Self
from weakref import WeakSet

from safe_stepwise.engines.base import EngineError


class SharedModel:
    """A model in memory, for the engines of one event loop that run the same model in the same way (``base``).

    ``users`` are the engines that use it and are not closed yet.
    """

    def __init__(self, base: object) -> None:
        self.base = (asyncio.get_running_loop(), base)
        self.users: WeakSet[Any] = WeakSet()
        self.deaths = 0
        """How often the model died; all requests under way are lost then."""
        _MODELS.add(self)

    @classmethod
    def of_base(cls, base: object) -> Iterator[Self]:
        """Yield the models of a base that engines of this event loop use."""
        for model in _MODELS:
            if isinstance(model, cls) and model.users and model.base == (asyncio.get_running_loop(), base):
                yield model

    def leave(self, engine: object) -> bool:
        """Remove an engine from the users; return whether it was the last one, so that the model can be closed."""
        self.users.discard(engine)
        return not self.users

    def loss_error(self, reason: str) -> EngineError:
        """Return the error of a request that was lost when the model died; it is transient the first time."""
        if self.is_dead:
            advice = "it was started again once, and died again; the same command asks what is owed"
            return EngineError(f"{reason} ({advice})")
        return EngineError(reason, transient=True)

    @property
    def is_dead(self) -> bool:
        """Whether the model died again after its second start."""
        return self.deaths > 1


_MODELS: WeakSet[SharedModel] = WeakSet()
