"""Steps that the generator judges itself: the papers' second baseline (SAFE v1, section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping

from safe_stepwise.engines.client import Client
from safe_stepwise.methods.loop import GENERATOR, Limits, run_question
from safe_stepwise.records import Question, Trajectory


class SelfVerification:
    """The loop with the generator in the verifier's place."""

    name = "self_verification"
    title = "Self-verification"
    roles: tuple[str, ...] = (GENERATOR,)
    prompts: tuple[str, ...] = ("loop/generate", "loop/final_answer", "loop/verify")
    options = Limits

    async def answer(
        self, question: Question, clients: Mapping[str, Client], options: Limits
    ) -> Trajectory:
        itself = clients[GENERATOR]
        return await run_question(question, itself, itself, options, self.name)
