"""The symbolic teacher and the symbolic judge.

The teacher says what benchmark verification asks, from the annotated hops: 2Wiki's evidence triples
and MuSiQue's decomposition; a question without either (HotpotQA) is more than it can answer, which
it says. An error drops what it should have said.

The judge goes by exact match with the accepted answers; an error is the other verdict.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.graphs.hops import AnnotatedHop, annotated_hops
from safe_stepwise.graphs.stated import look_up
from safe_stepwise.methods.scene import JUDGE, AnswerScene, Scene
from safe_stepwise.players.symbolic import Rates, Role
from safe_stepwise.records import Triple
from safe_stepwise.scoring import exact_match


def _teach(request: Request, rates: Rates, chance: Random) -> str:
    scene = request.scene
    assert isinstance(scene, Scene)
    hops = annotated_hops(scene.question)
    if not hops:
        raise EngineError("the row has no annotated triples to reason over")
    known, form = _TOLD[request.role]
    told = [part for part in known(scene, hops) if chance.random() >= rates.error_rate]
    return json.dumps(form(told))


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


def _plain(triple: Triple) -> dict[str, Any]:
    return {"head": triple.head, "relation": triple.relation, "tail": triple.tail}


def _proposal(steps: list[Any]) -> dict[str, Any]:
    explanation = "The annotated triples, in their order."
    return {"path": steps, "verdict": "none", "explanation": explanation}


_Known = Callable[[Scene, Sequence[AnnotatedHop]], list[Any]]
_TOLD: Mapping[str, tuple[_Known, Callable[[list[Any]], dict[str, Any]]]] = {
    "extract": (_stated, lambda triples: {"triples": triples}),
    "glean": (lambda scene, hops: [], lambda triples: {"triples": triples}),
    "resolve": (lambda scene, hops: [], lambda groups: {"groups": groups}),
    "path": (lambda scene, hops: [_plain(t) for hop in hops for t in hop.triples], _proposal),
}
"""What is known in a role, and the form of its reply."""


def _judge(request: Request, rates: Rates, chance: Random) -> str:
    scene = request.scene
    if not isinstance(scene, AnswerScene):
        raise EngineError("the symbolic judge has no answer to judge")
    is_wrong = chance.random() < rates.error_rate
    is_match = exact_match(scene.answer, scene.accepted, "synthetic") == 1.0
    verdict = "correct" if is_match != is_wrong else "incorrect"
    why = "Once normalised it is" if verdict == "correct" else "Even normalised it is not"
    return json.dumps({"explanation": f"{why} an accepted answer.", "verdict": verdict})


ROLES: Mapping[str, Role] = {**dict.fromkeys(_TOLD, _teach), JUDGE: _judge}
