"""SAFE, where a trained verifier judges every step (SAFE v1, section 3.4), and its baselines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from safe_stepwise.engines.client import Client
from safe_stepwise.methods.loop import GENERATOR, VERIFIER, Limits, run_question
from safe_stepwise.records import Question, Trajectory

_GENERATE = ("loop/generate", "loop/final_answer")


@dataclass
class Stepwise:
    """The loop with the player of ``judged_by`` as verifier, or without one."""

    name: str
    title: str
    roles: tuple[str, ...] = (GENERATOR,)
    prompts: tuple[str, ...] = (*_GENERATE, "loop/verify")
    judged_by: str | None = GENERATOR
    options = Limits

    async def answer(
        self, question: Question, clients: Mapping[str, Client], options: Limits
    ) -> Trajectory:
        """Everything that was done to answer one question."""
        verifier = clients[self.judged_by] if self.judged_by else None
        return await run_question(question, clients[GENERATOR], verifier, options, self.name)


NO_VERIFICATION = Stepwise("no_verification", "No verification", prompts=_GENERATE, judged_by=None)
"""Steps that nobody judges, every one in the right form being accepted (SAFE v1, section 4.1)."""
SELF_VERIFICATION = Stepwise("self_verification", "Self-verification")
"""Steps that the generator judges itself (SAFE v1, section 4.1)."""
SAFE = Stepwise("safe", "SAFE", (GENERATOR, VERIFIER), judged_by=VERIFIER)
