"""No model: reasons over a question's annotations, wrong at a seeded rate; hence simulated.

Spec: ``symbolic``, or ``symbolic:error_rate=0.1,seed=3``. It answers the prompts of benchmark
verification from 2Wiki's evidence triples and MuSiQue's decomposition; a question without either
(HotpotQA) is more than it can answer, which it says. An error drops what it should have said, and
depends on the seed and the request alone, so that a run can be repeated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from safe_stepwise.engines.base import Completion, EngineError, Request, request_key
from safe_stepwise.errors import UserError
from safe_stepwise.hops import AnnotatedHop, annotated_hops, look_up
from safe_stepwise.records import Triple


class SymbolicEngine:
    """See the module docstring; ``error_rate`` (0 to 1) is that of each thing it says."""

    simulated = True

    def __init__(self, error_rate: float = 0.0, seed: int = 0) -> None:
        self.error_rate = error_rate
        self.seed = seed
        self.name = f"symbolic:error_rate={error_rate},seed={seed} (simulated)"
        self.identity: Mapping[str, Any] = {
            "engine": "symbolic",
            "error_rate": error_rate,
            "seed": seed,
        }

    @classmethod
    def read(cls, settings: str) -> SymbolicEngine:
        """The engine of a spec's settings; ``UserError`` for others.

        >>> SymbolicEngine.read("error_rate=0.1,seed=3").name
        'symbolic:error_rate=0.1,seed=3 (simulated)'
        """
        types: dict[str, Callable[[str], Any]] = {"error_rate": float, "seed": int}
        values: dict[str, Any] = {}
        try:
            for part in filter(None, settings.split(",")):
                name, _, value = part.partition("=")
                values[name] = types[name](value)
        except (KeyError, ValueError):
            values["error_rate"] = -1
        if not 0 <= values.get("error_rate", 0) <= 1:
            raise UserError(
                f"symbolic:{settings} can't be read: write symbolic:error_rate=0.1,seed=3, "
                "the rate from 0 to 1"
            )
        return cls(**values)

    async def check(self) -> None:
        """Nothing that could be missing."""

    async def close(self) -> None:
        """Nothing to free."""

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: Request) -> Completion | EngineError:
        reply = _REPLIES.get(request.role)
        if reply is None or request.question is None:
            return EngineError(f"the symbolic engine does not know the role {request.role!r}")
        hops = annotated_hops(request.question)
        if not hops:
            return EngineError("the row has no annotated triples to reason over")
        chance = Random(f"{self.seed} {request_key(self, request)}")
        said = [part for part in reply(request, hops) if chance.random() >= self.error_rate]
        return Completion(json.dumps(_FORMS[request.role](said)))


def _stated(request: Request, hops: Sequence[AnnotatedHop]) -> list[Any]:
    """Annotated triples that the passage states."""
    assert request.question is not None
    assert request.passage is not None
    passage = request.question.passages[request.passage - 1]
    found = []
    for hop in hops:
        finding = look_up(hop, [(request.passage, passage)])
        if finding.status == "stated":
            found += [_plain(triple) | {"sentence": finding.sentence} for triple in hop.triples]
    return found


def _path(request: Request, hops: Sequence[AnnotatedHop]) -> list[Any]:
    return [_plain(triple) for hop in hops for triple in hop.triples]


def _nothing(request: Request, hops: Sequence[AnnotatedHop]) -> list[Any]:
    return []


def _plain(triple: Triple) -> dict[str, Any]:
    return {"head": triple.head, "relation": triple.relation, "tail": triple.tail}


_REPLIES: Mapping[str, Callable[[Request, Sequence[AnnotatedHop]], list[Any]]] = {
    "extract": _stated,
    "glean": _nothing,
    "resolve": _nothing,
    "path": _path,
}
_FORMS: Mapping[str, Callable[[list[Any]], dict[str, Any]]] = {
    "extract": lambda triples: {"triples": triples},
    "glean": lambda triples: {"triples": triples},
    "resolve": lambda groups: {"groups": groups},
    "path": lambda steps: {
        "path": steps,
        "verdict": "none",
        "explanation": "The annotated triples, in their order.",
    },
}
