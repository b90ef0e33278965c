"""The symbolic player of Deliberation on Priors: goes by the gold path, or by the answers.

A path is right if it is a gold one from its topic; where none of those left is, if what it leads to
has the best F1 with the answers (above 0) of those left. ``planted=K`` has it follow K wrong paths
of the pool first, in their order there, and say of each that it does not suffice: so the caller
plants them in the pool, and the right answer comes after 1 + 2(K + 1) calls while a path is left
beside. An error drops the constraints, follows a wrong path, or turns a verdict round.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from safe_stepwise import prompts
from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.methods.path_deliberating import PROMPTS
from safe_stepwise.methods.scene import PoolScene
from safe_stepwise.players.symbolic import Rates, Role, written
from safe_stepwise.scoring import set_f1

MOST = 1_000
"""Answers that it names: a path may lead to more of them than fit into a reply."""


def _right(scene: PoolScene) -> list[int]:
    gold = [n for n, (c, _) in enumerate(scene.pool) if c in scene.question.gold_paths]
    answers = scene.question.answers
    worth = [set_f1(len(answers & {*ends}), len(ends), len(answers)) for _, ends in scene.pool]
    return gold or [n for n, f1 in enumerate(worth) if f1 and f1 == max(worth)]


def _constrain(scene: PoolScene, rates: Rates, chance: Random) -> dict[str, Any]:
    """That the answers are of the sort that the right path's last relation leads to."""
    right = _right(scene)
    if not right or chance.random() < rates.error_rate:
        return {"constraints": []}
    last = scene.pool[right[0]][0].path[-1]
    said = f"The answers are something that {last} leads to."
    return {"constraints": [{"kind": "type", "text": said, "relation": last}]}


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
    why = "These are the answers." if suffices else "It leads to something else than is asked."
    named = (answers or list(ends))[:MOST]
    return {"answer": named, "sufficient": suffices, "reason": why}


_Play = Callable[[PoolScene, Rates, Random], dict[str, Any]]


def _role(play: _Play) -> Role:
    def said(request: Request, rates: Rates, chance: Random) -> str:
        if not isinstance(request.scene, PoolScene):
            raise EngineError("the symbolic player has no pool of paths to go by")
        return written(play(request.scene, rates, chance), rates, chance)

    return said


_PLAYS: tuple[_Play, ...] = (_constrain, _choose, _verify)
ROLES: Mapping[str, Role] = {prompts.load(name).role: _role(play) for name, play in zip(PROMPTS, _PLAYS, strict=True)}
