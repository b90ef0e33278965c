"""A verifier that draws its verdicts: what guidance by chance is worth, hence a lower bound.

Spec: ``chance:reject=0.2``, or ``chance:reject=0.2,seed=3``. It rejects that share of the steps with a label drawn
from those of the step's kind, in the form that the request asks for, and knows nothing of any annotation. What it
draws depends on the seed and the request alone, so that a run can be resumed and repeated. All it makes is simulated.
"""

from __future__ import annotations

from random import Random

from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import FeedbackError
from safe_stepwise.methods.scene import Scene
from safe_stepwise.methods.verifier import ROLE
from safe_stepwise.players.symbolic import Player, as_asked, is_listed
from safe_stepwise.records import Feedback
from safe_stepwise.taxonomy import CORRECT, check_order

EXAMPLE = "chance:reject=0.2"
AGAIN = "Write this step again, without the error."
"""The guidance of every rejection: a better one would have to look."""


class ChanceEngine(Player):
    """See the module docstring."""

    def __init__(self, reject: float, seed: int = 0) -> None:
        super().__init__("chance", {"reject": reject, "seed": seed})
        self.reject, self.seed = reject, seed

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

    def say(self, request: Request, chance: Random) -> str:
        """The verdict that is drawn for a request."""
        scene = request.scene
        if request.role != ROLE or not isinstance(scene, Scene) or scene.step is None:
            raise EngineError(f"chance judges steps alone: it has no role {request.role!r}")
        verdict = Feedback(CORRECT, "Nothing was looked at.", "")
        if chance.random() < self.reject:
            labels = [label for label in check_order(scene.step.kind) if is_listed(request, label)]
            if labels:  # else all that the step could have is of a dropped category
                label = chance.choice(labels)
                verdict = Feedback(label, f"The step is taken for a case of {label}.", AGAIN)
        try:
            return as_asked(verdict, request, scene)
        except FeedbackError as error:
            raise EngineError(f"the step breaks the grammar ({error})") from None
