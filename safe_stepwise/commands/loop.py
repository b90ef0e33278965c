"""Options of the commands that answer by the loop: its method, its players, and their engines."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from safe_stepwise.commands.options import copy_into
from safe_stepwise.commands.values import Count, Name, Natural, Seconds, Share
from safe_stepwise.engines.base import AS_PROMPTED, Allowance
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.openai import TIMEOUT_S
from safe_stepwise.errors import UserError, at_place, check_choice
from safe_stepwise.methods import METHODS, running
from safe_stepwise.methods.base import Method
from safe_stepwise.methods.best_of import BestOf
from safe_stepwise.methods.limits import Limits
from safe_stepwise.methods.loop import GENERATOR, VERIFIER, Stepwise
from safe_stepwise.methods.prompt_sets import EvidenceChoice
from safe_stepwise.open import check_spec, open_clients
from safe_stepwise.records import Attempt, Question, Trajectory

LOOPS = tuple(name for name, method in METHODS.items() if isinstance(method, Stepwise))
ROLES = ("generate", "final_answer", "verify")
_LIMITS = Limits()
OnAttempt = Callable[[Attempt], None]


@dataclass(frozen=True, kw_only=True)
class Loop:
    """The options of the commands that answer by the loop; raises ``UserError`` for contradictory options."""

    generator: str
    verifier: str | None = None
    method: Annotated[str, Name(LOOPS)] = "safe"
    max_steps: Count = _LIMITS.max_steps
    max_retries: Natural = _LIMITS.max_retries
    on_exhausted: Literal["accept", "drop"] = _LIMITS.on_exhausted
    verifier_evidence: EvidenceChoice | None = None
    scores: bool = False
    accept_above: Share | None = None
    allowance: Allowance = AS_PROMPTED
    cache: Path | None = None
    timeout: Seconds = TIMEOUT_S

    def __post_init__(self) -> None:
        if VERIFIER in self.stepwise.roles and self.verifier is None:
            raise UserError(
                f"the method {self.method} needs a verifier: give --verifier SPEC, "
                "or choose --method self_verification"
            )
        if VERIFIER not in self.stepwise.roles and self.verifier is not None:
            raise UserError(f"the method {self.method} asks no verifier: leave --verifier out")
        for role, spec in self.specs.items():
            with at_place(f"--{role}"):
                check_spec(spec)

    @property
    def stepwise(self) -> Stepwise:
        """The method that ``method`` names."""
        method = METHODS[check_choice(self.method, LOOPS, "--method")]
        assert isinstance(method, Stepwise)
        return method

    @property
    def specs(self) -> dict[str, str]:
        players = {GENERATOR: self.generator, VERIFIER: self.verifier}
        return {role: spec for role in self.stepwise.roles if (spec := players[role]) is not None}

    def refuse_symbolic(self, question: Question | None, hint: str) -> None:
        """Raise ``UserError`` with ``hint`` if a player needs annotations that a question (None: any) lacks."""
        for role, spec in self.specs.items():
            if spec.partition(":")[0] == "symbolic" and (question is None or not question.is_annotated):
                raise UserError(f"--{role}: symbolic goes by annotations, which {hint}")

    def opened(self) -> AbstractAsyncContextManager[Mapping[str, Client]]:
        """Open the players' engines for a context, which yields their clients by role."""
        return open_clients(self.specs, self.cache, self.timeout, self.allowance)

    async def answer(
        self, question: Question, clients: Mapping[str, Client], on_attempt: OnAttempt, samples: int = 1
    ) -> Trajectory:
        """Answer a question; of several ``samples`` the verifier, or a generator that judges itself, chooses one."""
        players = {role: clients[role] for role in self.stepwise.roles}
        method: Method = self.stepwise
        if samples > 1:
            method = BestOf(samples).applied_to(method)
            players.setdefault(VERIFIER, players[GENERATOR])
        limits = copy_into(Limits, self, scores=self.scores or None, on_attempt=on_attempt)
        return await running.make_answerer(method, players, limits)(question)
