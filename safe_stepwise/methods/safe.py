"""SAFE: a trained verifier judges every step (SAFE v1, section 3.4)."""

from __future__ import annotations

from collections.abc import Mapping

from safe_stepwise.engines.client import Client
from safe_stepwise.methods.loop import GENERATOR, VERIFIER, Limits, run_question
from safe_stepwise.records import Question, Trajectory


class Safe:
    """The loop with a verifier of its own."""

    name = "safe"
    title = "SAFE"
    roles: tuple[str, ...] = (GENERATOR, VERIFIER)
    prompts: tuple[str, ...] = ("loop/generate", "loop/final_answer", "loop/verify")
    options = Limits

    async def answer(
        self, question: Question, clients: Mapping[str, Client], options: Limits
    ) -> Trajectory:
        generator, verifier = clients[GENERATOR], clients[VERIFIER]
        return await run_question(question, generator, verifier, options, self.name)
