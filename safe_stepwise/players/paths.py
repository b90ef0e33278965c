"""The symbolic judge of relation paths: goes by the gold path, wrong at the rate of errors.

A path is valid if it has the gold path's triples, no more and no fewer, in an order that follows.
"""

import json
from collections.abc import Mapping
from random import Random

from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.graphs.told import first_lost, starts_of
from safe_stepwise.methods.paths import roles
from safe_stepwise.methods.scene import PathScene
from safe_stepwise.players.symbolic import Rates, Role


def _judge(request: Request, rates: Rates, chance: Random) -> str:
    scene = request.scene
    if not isinstance(scene, PathScene):
        raise EngineError("the symbolic judge of paths has no gold path to go by")
    is_wrong = chance.random() < rates.error_rate
    verdict = "YES" if _is_valid(scene) != is_wrong else "NO"
    reasons = json.loads(request.schema.text)["properties"] if request.schema else {}
    why = {"reasoning": "By the gold path."} if "reasoning" in reasons else {}
    return json.dumps({**why, "verdict": verdict})


def _is_valid(scene: PathScene) -> bool:
    told, gold = (sorted((t.head, t.relation, t.tail) for t in p) for p in (scene.path, scene.gold))
    return told == gold and first_lost(scene.path, starts_of(scene.question, scene.gold)) is None


ROLES: Mapping[str, Role] = dict.fromkeys(roles(), _judge)
