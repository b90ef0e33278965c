"""No model: reasons over a question's annotations, wrong at a seeded rate; hence simulated.

Spec: ``symbolic``, or ``symbolic:error_rate=0.1,seed=3``. It answers the prompts of benchmark
verification from 2Wiki's evidence triples and MuSiQue's decomposition; a question without either
(HotpotQA) is more than it can answer, which it says. An error drops what it should have said. In
the loop it generates and verifies (``symbolic_steps``). As judge it goes by exact match with the
accepted answers, and an error is the other verdict. Errors depend on the seed and the request
alone, so that a run can be repeated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from safe_stepwise.engines.base import Completion, EngineError, Request, request_key
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.hops import AnnotatedHop, annotated_hops, look_up
from safe_stepwise.metric import judge
from safe_stepwise.players import steps as symbolic_steps
from safe_stepwise.records import Triple
from safe_stepwise.scoring import exact_match
from safe_stepwise.steps import ANSWER_MARKER


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
        return cls(**values)

    async def check(self) -> None:
        """Nothing that could be missing."""

    async def close(self) -> None:
        """Nothing to free."""

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        return [self.answer(request) for request in requests]

    def answer(self, request: Request) -> Completion | EngineError:
        in_loop = request.role in symbolic_steps.ROLES
        known = in_loop or request.role in _REPLIES or request.role == judge.ROLE
        if request.question is None or not known:
            return EngineError(f"the symbolic engine does not know the role {request.role!r}")
        chance = Random(f"{self.seed} {request_key(self, request)}")
        try:
            if in_loop:
                return Completion(symbolic_steps.reply(request, self.error_rate, chance))
            if request.role == judge.ROLE:
                return Completion(_verdict(request, chance.random() < self.error_rate))
            return Completion(self._verification(request, chance))
        except EngineError as error:
            return error

    def _verification(self, request: Request, chance: Random) -> str:
        assert request.question is not None
        hops = annotated_hops(request.question)
        if not hops:
            raise EngineError("the row has no annotated triples to reason over")
        reply = _REPLIES[request.role](request, hops)
        said = [part for part in reply if chance.random() >= self.error_rate]
        return json.dumps(_FORMS[request.role](said))


def _bad(settings: str, reason: str) -> UserError:
    return UserError(f"symbolic:{settings}: {reason}; write symbolic:error_rate=0.1,seed=3")


def _verdict(request: Request, is_wrong: bool) -> str:
    """What the judge replies to the answer that stands in the request's step."""
    if request.question is None or request.step is None:
        raise EngineError("the symbolic judge has no answer to judge")
    answer = request.step.text.removeprefix(ANSWER_MARKER)
    is_match = exact_match(answer, request.question.accepted) == 1.0
    verdict = "correct" if is_match != is_wrong else "incorrect"
    why = "Once normalised it is" if verdict == "correct" else "Even normalised it is not"
    return json.dumps({"explanation": f"{why} an accepted answer.", "verdict": verdict})


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
