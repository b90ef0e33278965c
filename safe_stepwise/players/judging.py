"""The symbolic judge: exact match with the accepted answers; an error is the other verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random

from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.methods.scene import JUDGE, AnswerScene
from safe_stepwise.players.symbolic import Role
from safe_stepwise.scoring import exact_match


def _judge(request: Request, error_rate: float, chance: Random) -> str:
    scene = request.scene
    if not isinstance(scene, AnswerScene):
        raise EngineError("the symbolic judge has no answer to judge")
    is_wrong = chance.random() < error_rate
    is_match = exact_match(scene.answer, scene.accepted, "synthetic") == 1.0
    verdict = "correct" if is_match != is_wrong else "incorrect"
    why = "Once normalised it is" if verdict == "correct" else "Even normalised it is not"
    return json.dumps({"explanation": f"{why} an accepted answer.", "verdict": verdict})


ROLES: Mapping[str, Role] = {JUDGE: _judge}
