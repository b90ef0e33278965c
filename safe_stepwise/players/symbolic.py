"""No model: reasons over a question's annotations, wrong at a seeded rate; hence simulated.

Spec: ``symbolic``, or ``symbolic:error_rate=0.1,seed=3``. What it says in a role stands in the file
of that role (``steps``, ``judging``). Errors depend on the seed and the request
alone, so that a run can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from safe_stepwise.engines.base import Completion, EngineError, Request, request_key
from safe_stepwise.errors import UserError

Role = Callable[[Request, float, Random], str]
"""From a request with its scene, the error rate and the chance of errors to the reply's text.

Raises EngineError where the scene gives nothing to go by.
"""


class SymbolicEngine:
    """See the module docstring; ``error_rate`` (0 to 1) is that of each thing it says."""

    simulated = True

    def __init__(self, roles: Mapping[str, Role], error_rate: float = 0.0, seed: int = 0) -> None:
        self.roles = roles
        self.error_rate = error_rate
        self.seed = seed
        self.name = f"symbolic:error_rate={error_rate},seed={seed} (simulated)"
        said = {"error_rate": error_rate, "seed": seed}
        self.identity: Mapping[str, Any] = {"engine": "symbolic", **said}

    @classmethod
    def read(cls, settings: str, roles: Mapping[str, Role]) -> SymbolicEngine:
        """The engine of a spec's settings; ``UserError`` for others.

        >>> SymbolicEngine.read("error_rate=0.1,seed=3", {}).name
        'symbolic:error_rate=0.1,seed=3 (simulated)'
        """
        types: dict[str, Callable[[str], Any]] = {"error_rate": float, "seed": int}
        values: dict[str, Any] = {}
        for part in filter(None, settings.split(",")):
            name, _, value = part.partition("=")
            if name not in types:
                raise _bad(settings, f"has no setting {name!r}")
            try:
                values[name] = types[name](value)
            except ValueError:
                raise _bad(settings, f"{name} is no number") from None
        if not 0 <= values.get("error_rate", 0) <= 1:
            raise _bad(settings, "error_rate has to be from 0 to 1")
        return cls(roles, **values)

    async def check(self) -> None:
        """Nothing that could be missing."""

    async def close(self) -> None:
        """Nothing to free."""

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        return [self.answer(request) for request in requests]

    def answer(self, request: Request) -> Completion | EngineError:
        play = self.roles.get(request.role)
        if play is None or request.scene is None:
            return EngineError(f"the symbolic engine does not know the role {request.role!r}")
        chance = Random(f"{self.seed} {request_key(self, request)}")
        try:
            return Completion(play(request, self.error_rate, chance))
        except EngineError as error:
            return error


def _bad(settings: str, reason: str) -> UserError:
    return UserError(f"symbolic:{settings}: {reason}; write symbolic:error_rate=0.1,seed=3")
