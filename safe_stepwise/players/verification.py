"""The symbolic teacher: what benchmark verification asks, from the annotated hops.

Those are 2Wiki's evidence triples and MuSiQue's decomposition; a question without either (HotpotQA)
is more than it can answer, which it says. An error drops what it should have said.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.graphs.hops import AnnotatedHop, annotated_hops, look_up
from safe_stepwise.methods.scene import Scene
from safe_stepwise.players.symbolic import Role
from safe_stepwise.records import Triple


def _reply(request: Request, error_rate: float, chance: Random) -> str:
    scene = request.scene
    assert isinstance(scene, Scene)
    hops = annotated_hops(scene.question)
    if not hops:
        raise EngineError("the row has no annotated triples to reason over")
    known, form = _TOLD[request.role]
    return json.dumps(form([part for part in known(scene, hops) if chance.random() >= error_rate]))


def _stated(scene: Scene, hops: Sequence[AnnotatedHop]) -> list[Any]:
    """Annotated triples that the passage states."""
    assert scene.passage is not None
    passage = scene.question.passages[scene.passage - 1]
    found = []
    for hop in hops:
        finding = look_up(hop, [(scene.passage, passage)])
        if finding.status == "stated":
            found += [_plain(triple) | {"sentence": finding.sentence} for triple in hop.triples]
    return found


def _path(scene: Scene, hops: Sequence[AnnotatedHop]) -> list[Any]:
    return [_plain(triple) for hop in hops for triple in hop.triples]


def _nothing(scene: Scene, hops: Sequence[AnnotatedHop]) -> list[Any]:
    return []


def _plain(triple: Triple) -> dict[str, Any]:
    return {"head": triple.head, "relation": triple.relation, "tail": triple.tail}


def _proposal(steps: list[Any]) -> dict[str, Any]:
    explanation = "The annotated triples, in their order."
    return {"path": steps, "verdict": "none", "explanation": explanation}


_Known = Callable[[Scene, Sequence[AnnotatedHop]], list[Any]]
_TOLD: Mapping[str, tuple[_Known, Callable[[list[Any]], dict[str, Any]]]] = {
    "extract": (_stated, lambda triples: {"triples": triples}),
    "glean": (_nothing, lambda triples: {"triples": triples}),
    "resolve": (_nothing, lambda groups: {"groups": groups}),
    "path": (_path, _proposal),
}
"""What is known in a role, and the form of its reply."""
ROLES: Mapping[str, Role] = dict.fromkeys(_TOLD, _reply)
