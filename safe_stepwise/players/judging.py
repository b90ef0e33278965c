"""The symbolic teacher, the two symbolic judges, and the symbolic player of Deliberation on Priors.

The teacher answers the requests of benchmark verification from the annotated hops (2Wiki's evidence triples, MuSiQue's
decomposition). It fails for a question without them (HotpotQA). At its error rate it omits items of a reply.

The judge of answers compares with the accepted answers by exact match. The judge of relation paths calls a path valid
if it has exactly the gold path's triples, in a possible order. Both reverse a verdict at their error rate.

The player of Deliberation on Priors chooses the right path of the pool: a gold path, or if none is left the path whose
ends have the best F1 with the answers (above 0). With ``planted=K`` it first follows K wrong paths of the pool, in
order, and says of each that it does not suffice; the right answer then takes 1 + 2(K + 1) calls if another path is
left. At its error rate it omits constraints, follows a wrong path, reverses a verdict, or recalls a wrong answer.
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
from safe_stepwise.methods import path_deliberating, path_recall, paths
from safe_stepwise.methods.scene import JUDGE, AnswerScene, PathScene, PoolScene, Scene
from safe_stepwise.players.symbolic import Rates, Role, in_json, scene_of
from safe_stepwise.records import Triple, as_object
from safe_stepwise.scoring import exact_match, set_f1

MAX_ANSWERS = 1_000
"""Maximum number of answers that the player names, as a path may have more ends than fit into a reply."""


def _right(scene: PoolScene) -> list[int]:
    gold = [n for n, (c, _) in enumerate(scene.pool) if c in scene.question.gold_paths]
    answers = scene.question.answers
    f1_scores = [set_f1(len(answers & {*ends}), len(ends), len(answers)) for _, ends in scene.pool]
    return gold or [n for n, f1 in enumerate(f1_scores) if f1 and f1 == max(f1_scores)]


def _constrain(scene: PoolScene, rates: Rates, chance: Random) -> dict[str, Any]:
    """Reply with the annotated constraints, or with one: the right path's last relation leads to the answers."""
    if annotated := scene.question.constraints:
        return {"constraints": [as_object(c) for c in annotated if chance.random() >= rates.error_rate]}
    right = _right(scene)
    if not right or chance.random() < rates.error_rate:
        return {"constraints": []}
    last = scene.pool[right[0]][0].path[-1]
    claim = f"The answers are something that {last} leads to."
    return {"constraints": [{"kind": "type", "text": claim, "relation": last}]}


def _choose(scene: PoolScene, rates: Rates, chance: Random) -> dict[str, Any]:
    """Reply with the number of the path to follow: a planted one first, then the right one."""
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
    return {"answer": (answers or list(ends))[:MAX_ANSWERS], "sufficient": suffices, "reason": reason}


def _recall(scene: PoolScene, rates: Rates, chance: Random) -> dict[str, Any]:
    """Reply with the annotated answers; without a graph an error names a topic instead."""
    is_wrong = chance.random() < rates.error_rate
    names = scene.question.topics if is_wrong else sorted(scene.question.answers)[:MAX_ANSWERS]
    return {"reason": "By heart.", "answer": [*names]}


_Play = Callable[[PoolScene, Rates, Random], dict[str, Any]]


def _role(play: _Play) -> Role:
    """Make a role of a play: it gets the scene, and its reply is written as JSON."""

    def reply(request: Request, rates: Rates, chance: Random) -> str:
        scene = scene_of(request, PoolScene, "the symbolic player has no pool of paths to go by")
        return in_json(play(scene, rates, chance), rates, chance)

    return reply


_PLAYS: tuple[_Play, ...] = (_constrain, _choose, _verify, _recall)
_PLAYED_PROMPTS = (*path_deliberating.PROMPTS, path_recall.PROMPT)
OVER_PATHS: Mapping[str, Role] = {
    prompts.load(name).role: _role(play) for name, play in zip(_PLAYED_PROMPTS, _PLAYS, strict=True)
}


def _find_stated_triples(scene: Scene, hops: Sequence[AnnotatedHop]) -> list[Any]:
    assert scene.passage is not None
    page = (scene.passage, scene.question.passages[scene.passage - 1])
    findings = ((hop, look_up(hop, [page])) for hop in hops)
    triples = ((triple, f.sentence) for hop, f in findings if f.status == "stated" for triple in hop.triples)
    return [_plain(triple) | {"sentence": sentence} for triple, sentence in triples]


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
"""By role: a reader of its items from the annotations, the reply's field for them, and the reply's constant fields."""


def _teach(request: Request, rates: Rates, chance: Random) -> str:
    """Reply to a request of benchmark verification with the annotated items of its role."""
    scene = scene_of(request, Scene)
    hops = annotated_hops(scene.question)
    if not hops:
        raise EngineError("the row has no annotated triples to reason over")
    read, name, constants = _TAUGHT[request.role]
    return json.dumps({name: [item for item in read(scene, hops) if chance.random() >= rates.error_rate], **constants})


def _judge(request: Request, rates: Rates, chance: Random) -> str:
    scene = scene_of(request, AnswerScene, "the symbolic judge has no answer to judge")
    is_wrong = chance.random() < rates.error_rate
    is_match = exact_match(scene.answer, scene.accepted, "synthetic") == 1.0
    verdict = "correct" if is_match != is_wrong else "incorrect"
    reason = "Once normalised it is" if verdict == "correct" else "Even normalised it is not"
    return json.dumps({"explanation": f"{reason} an accepted answer.", "verdict": verdict})


def _judge_path(request: Request, rates: Rates, chance: Random) -> str:
    scene = scene_of(request, PathScene, "the symbolic judge of paths has no gold path to go by")
    is_wrong = chance.random() < rates.error_rate
    path, gold = (sorted(t.names for t in triples) for triples in (scene.path, scene.gold))
    is_valid = path == gold and find_unreached(scene.path, starts_of(scene.question, scene.gold)) is None
    fields = json.loads(request.schema.text)["properties"] if request.schema else {}
    reasoning = {"reasoning": "By the gold path."} if "reasoning" in fields else {}
    return json.dumps({**reasoning, "verdict": "YES" if is_valid != is_wrong else "NO"})


ROLES: Mapping[str, Role] = {
    **dict.fromkeys(_TAUGHT, _teach),
    JUDGE: _judge,
    **dict.fromkeys(paths.roles(), _judge_path),
    **OVER_PATHS,
}
