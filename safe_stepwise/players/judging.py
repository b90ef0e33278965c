"""The symbolic teacher, the symbolic judges, and the symbolic player of Deliberation on Priors.

The teacher says what benchmark verification asks, from the annotated hops: 2Wiki's evidence triples and MuSiQue's
decomposition; a question without either (HotpotQA) is more than it can answer, which it says. An error drops what it
should have said.

The judge goes by exact match with the accepted answers; an error is the other verdict. So is it with the judge of
relation paths: one is valid if it has the gold path's triples, no more and no fewer, in an order that follows.

The player goes by the gold path, or by the answers. A path is right if it is a gold one from its topic; where none of
those left is, if what it leads to has the best F1 with the answers (above 0) of those left. ``planted=K`` has it
follow K wrong paths of the pool first, in their order there, and say of each that it does not suffice: so the caller
plants them in the pool, and the right answer comes after 1 + 2(K + 1) calls while a path is left beside. An error
drops the constraints, follows a wrong path, or turns a verdict round.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from safe_stepwise import prompts
from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.graphs.hop_lookup import look_up
from safe_stepwise.graphs.hops import AnnotatedHop, annotated_hops
from safe_stepwise.graphs.path_order import find_unreached, starts_of
from safe_stepwise.methods.path_deliberating import PROMPTS
from safe_stepwise.methods.paths import roles
from safe_stepwise.methods.scene import JUDGE, AnswerScene, PathScene, PoolScene, Scene
from safe_stepwise.players.symbolic import Rates, Role, in_json
from safe_stepwise.records import Triple
from safe_stepwise.scoring import exact_match, set_f1

MAX_ANSWERS = 1_000
"""Answers that it names: a path may lead to more of them than fit into a reply."""


def _right(scene: PoolScene) -> list[int]:
    gold = [n for n, (c, _) in enumerate(scene.pool) if c in scene.question.gold_paths]
    answers = scene.question.answers
    f1_scores = [set_f1(len(answers & {*ends}), len(ends), len(answers)) for _, ends in scene.pool]
    return gold or [n for n, f1 in enumerate(f1_scores) if f1 and f1 == max(f1_scores)]


def _constrain(scene: PoolScene, rates: Rates, chance: Random) -> dict[str, Any]:
    """Reply with a constraint: the answers are what the right path's last relation leads to."""
    right = _right(scene)
    if not right or chance.random() < rates.error_rate:
        return {"constraints": []}
    last = scene.pool[right[0]][0].path[-1]
    claim = f"The answers are something that {last} leads to."
    return {"constraints": [{"kind": "type", "text": claim, "relation": last}]}


def _choose(scene: PoolScene, rates: Rates, chance: Random) -> dict[str, Any]:
    right = _right(scene)
    wrong = [n for n in range(len(scene.pool)) if n not in right]
    is_wrong = chance.random() < rates.error_rate
    if wrong and is_wrong:
        return {"reason": "It sounds like it.", "path": chance.choice(wrong) + 1}
    if wrong and scene.tried < rates.planted:
        return {"reason": "One of those planted.", "path": wrong[0] + 1}
    return {"reason": "By the annotation.", "path": right[0] + 1 if right else 0}


def _verify(scene: PoolScene, rates: Rates, chance: Random) -> dict[str, Any]:
    _, ends = scene.pool[scene.chosen - 1]
    is_right = scene.chosen - 1 in _right(scene)
    answers = [end for end in ends if end in scene.question.answers] if is_right else []
    suffices = is_right != (chance.random() < rates.error_rate)
    reason = "These are the answers." if suffices else "It leads to something else than is asked."
    answers_shown = (answers or list(ends))[:MAX_ANSWERS]
    return {"answer": answers_shown, "sufficient": suffices, "reason": reason}


_Play = Callable[[PoolScene, Rates, Random], dict[str, Any]]


def _role(play: _Play) -> Role:
    def reply(request: Request, rates: Rates, chance: Random) -> str:
        if not isinstance(request.scene, PoolScene):
            raise EngineError("the symbolic player has no pool of paths to go by")
        return in_json(play(request.scene, rates, chance), rates, chance)

    return reply


_PLAYS: tuple[_Play, ...] = (_constrain, _choose, _verify)
OVER_PATHS: Mapping[str, Role] = {
    prompts.load(name).role: _role(play) for name, play in zip(PROMPTS, _PLAYS, strict=True)
}


def _find_stated_triples(scene: Scene, hops: Sequence[AnnotatedHop]) -> list[Any]:
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


_AnnotationReader = Callable[[Scene, Sequence[AnnotatedHop]], list[Any]]
_TAUGHT: Mapping[str, tuple[_AnnotationReader, str, Mapping[str, str]]] = {
    "extract": (_find_stated_triples, "triples", {}),
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
    read, name, constants = _TAUGHT[request.role]
    return json.dumps({name: [item for item in read(scene, hops) if chance.random() >= rates.error_rate], **constants})


def _judge(request: Request, rates: Rates, chance: Random) -> str:
    scene = request.scene
    if not isinstance(scene, AnswerScene):
        raise EngineError("the symbolic judge has no answer to judge")
    is_wrong = chance.random() < rates.error_rate
    is_match = exact_match(scene.answer, scene.accepted, "synthetic") == 1.0
    verdict = "correct" if is_match != is_wrong else "incorrect"
    reason = "Once normalised it is" if verdict == "correct" else "Even normalised it is not"
    return json.dumps({"explanation": f"{reason} an accepted answer.", "verdict": verdict})


def _judge_path(request: Request, rates: Rates, chance: Random) -> str:
    scene = request.scene
    if not isinstance(scene, PathScene):
        raise EngineError("the symbolic judge of paths has no gold path to go by")
    is_wrong = chance.random() < rates.error_rate
    path, gold = (sorted((t.head, t.relation, t.tail) for t in triples) for triples in (scene.path, scene.gold))
    is_valid = path == gold and find_unreached(scene.path, starts_of(scene.question, scene.gold)) is None
    fields = json.loads(request.schema.text)["properties"] if request.schema else {}
    reasoning = {"reasoning": "By the gold path."} if "reasoning" in fields else {}
    return json.dumps({**reasoning, "verdict": "YES" if is_valid != is_wrong else "NO"})


ROLES: Mapping[str, Role] = {
    **dict.fromkeys(_TAUGHT, _teach),
    JUDGE: _judge,
    **dict.fromkeys(roles(), _judge_path),
    **OVER_PATHS,
}
