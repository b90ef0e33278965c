"""The passage checker as a verifier: it judges steps by what the passages state, without a model or annotations.

``checker`` calls a step `Correct` if nothing is against it: what it can't decide passes. ``checker:strict`` lets pass
only what it has found stated, and calls the rest `Unsupported`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from safe_stepwise.checking.passage_checker import SEARCH, SOUND, UNDECIDED, judge_last
from safe_stepwise.engines.base import Completion, Engine, EngineError, Request
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import format_feedback
from safe_stepwise.methods.scene import Scene
from safe_stepwise.methods.verifier import GUIDANCE, ROLE
from safe_stepwise.players.symbolic import is_listed
from safe_stepwise.records import Feedback
from safe_stepwise.store.code import code_digest
from safe_stepwise.taxonomy import CORRECT

STRICT = "strict"


class CheckerEngine(Engine):
    """The engine of the passage checker; of a request it opens the question, the passages and the steps."""

    simulated = False

    def __init__(self, setting: str = "") -> None:
        if setting not in ("", STRICT):
            raise UserError(f"checker:{setting}: write checker or checker:{STRICT}")
        self.is_strict = setting == STRICT
        self.name = "checker:strict" if self.is_strict else "checker"
        code = code_digest(judge_last.__module__)
        self.identity: Mapping[str, Any] = {"engine": "checker", "strict": self.is_strict, "code": code}

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        return [self.answer(request) for request in requests]

    def answer(self, request: Request) -> Completion | EngineError:
        scene = request.scene
        if request.role != ROLE or not isinstance(scene, Scene) or scene.step is None:
            return EngineError(f"checker judges steps alone: it has no role {request.role!r}")
        q = scene.question
        verdict = judge_last(q.question, q.passages, scene.previous, scene.step, scene.searches)
        passing = (SOUND, SEARCH, *([] if self.is_strict else [UNDECIDED]))
        label = CORRECT if verdict.label in passing else verdict.label
        label = "Unsupported" if label == UNDECIDED else label
        reason = f"Not decided: {verdict.reason}." if verdict.label == UNDECIDED else f"{verdict.reason}."
        # It is sure of errors that it proves. What it finds stated may still be redundant, or lead nowhere.
        score = 0.0 if request.labels and verdict.label not in (SOUND, SEARCH, UNDECIDED) else None
        if label == CORRECT or not is_listed(request, label):
            feedback = Feedback(CORRECT, reason if verdict.reason else "All is stated.", "")
        else:
            feedback = Feedback(label, reason, GUIDANCE)
        return Completion(format_feedback(feedback), score=score)
