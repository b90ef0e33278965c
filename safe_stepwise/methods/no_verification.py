"""Steps that nobody judges: the papers' first baseline (SAFE v1, section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping

from safe_stepwise.engines.client import Client
from safe_stepwise.methods.loop import GENERATOR, Limits, run_question
from safe_stepwise.records import Question, Trajectory


class NoVerification:
    """The loop without a verifier: every step in the right form is accepted."""

    name = "no_verification"
    title = "No verification"
    roles: tuple[str, ...] = (GENERATOR,)
    prompts: tuple[str, ...] = ("loop/generate", "loop/final_answer")
    options = Limits

    async def answer(
        self, question: Question, clients: Mapping[str, Client], options: Limits
    ) -> Trajectory:
        return await run_question(question, clients[GENERATOR], None, options, self.name)
