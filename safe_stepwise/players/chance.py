"""A verifier that draws its verdicts: what guidance by chance is worth, hence a lower bound.

Spec: ``chance:reject=0.2``, or ``chance:reject=0.2,seed=3``. It rejects that share of the steps
with a label drawn from those of the step's kind, in the form that the request asks for, and knows
nothing of any annotation. What it draws depends on the seed and the request alone, so that a run
can be resumed and repeated. All it makes is simulated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from safe_stepwise.engines.base import Completion, EngineError, Request, request_key
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import FeedbackError
from safe_stepwise.methods.scene import Scene
from safe_stepwise.methods.verifier import ROLE
from safe_stepwise.players.verdicts import as_asked, is_listed
from safe_stepwise.records import Feedback
from safe_stepwise.taxonomy import CORRECT, check_order

EXAMPLE = "chance:reject=0.2"
AGAIN = "Write this step again, without the error."
"""The guidance of every rejection: a better one would have to look."""


class ChanceEngine:
    """See the module docstring."""

    simulated = True

    def __init__(self, reject: float, seed: int = 0) -> None:
        self.reject, self.seed = reject, seed
        self.name = f"chance:reject={reject},seed={seed} (simulated)"
        self.identity: Mapping[str, Any] = {"engine": "chance", "reject": reject, "seed": seed}

    @classmethod
    def read(cls, settings: str) -> ChanceEngine:
        """The engine of a spec's settings; ``UserError`` for others.

        >>> ChanceEngine.read("reject=0.25,seed=3").name
        'chance:reject=0.25,seed=3 (simulated)'
        """
        pairs = [part.partition("=") for part in settings.split(",")]
        said = {name: value for name, _, value in pairs}
        try:
            reject, seed = float(said.pop("reject")), int(said.pop("seed", "0"))
        except (KeyError, ValueError):
            reject, seed = -1.0, 0
        if said or not 0 <= reject <= 1:
            raise UserError(f"chance:{settings}: write {EXAMPLE}, a share from 0 to 1, or ...,seed=3")
        return cls(reject, seed)

    async def check(self) -> None:
        """Nothing that could be missing."""

    async def close(self) -> None:
        """Nothing to free."""

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        return [self.answer(request) for request in requests]

    def answer(self, request: Request) -> Completion | EngineError:
        """The verdict that is drawn for a request."""
        scene = request.scene
        if request.role != ROLE or not isinstance(scene, Scene) or scene.step is None:
            return EngineError(f"chance judges steps alone: it has no role {request.role!r}")
        chance = Random(f"{self.seed} {request_key(self, request)}")
        verdict = Feedback(CORRECT, "Nothing was looked at.", "")
        if chance.random() < self.reject:
            known = [n for n in check_order(scene.step.kind) if is_listed(request, n)]
            if known:  # else all that the step could have is of a dropped category
                label = chance.choice(known)
                verdict = Feedback(label, f"The step is taken for a case of {label}.", AGAIN)
        try:
            return Completion(as_asked(verdict, request, scene))
        except FeedbackError as error:
            return EngineError(f"the step breaks the grammar ({error})")
