"""The symbolic teacher and the symbolic judges.

The teacher says what benchmark verification asks, from the annotated hops: 2Wiki's evidence triples and MuSiQue's
decomposition; a question without either (HotpotQA) is more than it can answer, which it says. An error drops what it
should have said.

The judge goes by exact match with the accepted answers; an error is the other verdict. So is it with the judge of
relation paths: one is valid if it has the gold path's triples, no more and no fewer, in an order that follows.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.graphs.hops import AnnotatedHop, annotated_hops
from safe_stepwise.graphs.stated import look_up
from safe_stepwise.graphs.told import first_lost, starts_of
from safe_stepwise.methods.paths import roles
from safe_stepwise.methods.scene import JUDGE, AnswerScene, PathScene, Scene
from safe_stepwise.players.symbolic import Rates, Role
from safe_stepwise.records import Triple
from safe_stepwise.scoring import exact_match


def _stated(scene: Scene, hops: Sequence[AnnotatedHop]) -> list[Any]:
    assert scene.passage is not None
    page = (scene.passage, scene.question.passages[scene.passage - 1])
    findings = ((hop, look_up(hop, [page])) for hop in hops)
    return [
        _plain(triple) | {"sentence": finding.sentence}
        for hop, finding in findings
        if finding.status == "stated"
        for triple in hop.triples
    ]


def _plain(triple: Triple) -> dict[str, Any]:
    return {"head": triple.head, "relation": triple.relation, "tail": triple.tail}


_Known = Callable[[Scene, Sequence[AnnotatedHop]], list[Any]]
_TOLD: Mapping[str, tuple[_Known, str, Mapping[str, str]]] = {
    "extract": (_stated, "triples", {}),
    "glean": (lambda scene, hops: [], "triples", {}),
    "resolve": (lambda scene, hops: [], "groups", {}),
    "path": (
        lambda scene, hops: [_plain(t) for hop in hops for t in hop.triples],
        "path",
        {"verdict": "none", "explanation": "The annotated triples, in their order."},
    ),
}
"""What is known in a role, its name in the reply, and what else the reply says."""


def _teach(request: Request, rates: Rates, chance: Random) -> str:
    scene = request.scene
    assert isinstance(scene, Scene)
    hops = annotated_hops(scene.question)
    if not hops:
        raise EngineError("the row has no annotated triples to reason over")
    known, name, rest = _TOLD[request.role]
    return json.dumps({name: [part for part in known(scene, hops) if chance.random() >= rates.error_rate], **rest})


def _judge(request: Request, rates: Rates, chance: Random) -> str:
    scene = request.scene
    if not isinstance(scene, AnswerScene):
        raise EngineError("the symbolic judge has no answer to judge")
    is_wrong = chance.random() < rates.error_rate
    is_match = exact_match(scene.answer, scene.accepted, "synthetic") == 1.0
    verdict = "correct" if is_match != is_wrong else "incorrect"
    why = "Once normalised it is" if verdict == "correct" else "Even normalised it is not"
    return json.dumps({"explanation": f"{why} an accepted answer.", "verdict": verdict})


def _judge_path(request: Request, rates: Rates, chance: Random) -> str:
    scene = request.scene
    if not isinstance(scene, PathScene):
        raise EngineError("the symbolic judge of paths has no gold path to go by")
    is_wrong = chance.random() < rates.error_rate
    path, gold = (sorted((t.head, t.relation, t.tail) for t in triples) for triples in (scene.path, scene.gold))
    is_valid = path == gold and first_lost(scene.path, starts_of(scene.question, scene.gold)) is None
    fields = json.loads(request.schema.text)["properties"] if request.schema else {}
    why = {"reasoning": "By the gold path."} if "reasoning" in fields else {}
    return json.dumps({**why, "verdict": "YES" if is_valid != is_wrong else "NO"})


ROLES: Mapping[str, Role] = {**dict.fromkeys(_TOLD, _teach), JUDGE: _judge, **dict.fromkeys(roles(), _judge_path)}
