"""Methods that answer in one reply: direct, CoT, SP-CoT in JSON, and those of `numbered_steps` in text.

With several samples the most frequent answer counts (self-consistency, Wang et al., 2022). No reply is revised: one
that is not strict counts as wrong, except in scores that count salvaged replies.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from safe_stepwise.engines.base import EngineError
from safe_stepwise.engines.client import Client
from safe_stepwise.methods import prompting
from safe_stepwise.methods.prompting import GENERATOR, PromptingOptions
from safe_stepwise.methods.reading import END, UNREADABLE, Reading, attempt_of, read
from safe_stepwise.methods.scene import PromptingScene
from safe_stepwise.records import ANSWERED, FAILED, Attempt, Question, Trajectory


@dataclass
class OneShot:
    """A method with one prompt file and one request per sample."""

    name: str
    title: str
    prompts: tuple[str, ...]
    options: type[PromptingOptions] = PromptingOptions
    roles: tuple[str, ...] = (GENERATOR,)

    async def answer(self, question: Question, clients: Mapping[str, Client], options: PromptingOptions) -> Trajectory:
        """Answer one question and return its trajectory."""
        samples = options.samples if isinstance(options, prompting.VotingOptions) else 1
        tries: list[Attempt] = []
        failure = ""
        try:
            for number in range(samples):
                tries.append(await self._try(question, clients, options, number, samples))
        except EngineError as error:
            failure = str(error)
        answer = "" if failure else str(prompting.winning_fields(tries).get("answer", ""))
        stop = FAILED if failure else ANSWERED if answer else UNREADABLE
        return Trajectory(question.id, self.name, (), tuple(tries), answer, stop, failure)

    async def _try(
        self, question: Question, clients: Mapping[str, Client], options: PromptingOptions, number: int, samples: int
    ) -> Attempt:
        passages, scene = question.passages, PromptingScene(question, options.evidence)
        seed, text = number if samples > 1 else None, question.question
        request = prompting.request_of(self.prompts[0], options, scene, seed=seed, question=text, passages=passages)
        reply = await clients[GENERATOR].complete(request)
        reading = self.read_reply(reply.text, question, options).with_reply(reply)
        return attempt_of(number + 1, prompting.ANSWERING, END, reading, {GENERATOR: reply})

    def read_reply(self, text: str, question: Question, options: PromptingOptions) -> Reading:
        """Read a reply to a question."""
        fields = prompting.answer_fields(question.passages, options.evidence)
        quoted = prompting.texts_of(question.passages, question.question)
        return read(text, fields, quoted, last="answer")


DIRECT = OneShot("direct", "Direct", ("direct/direct",))
"""The answer at once, from all passages (SG-FSM, appendix A.3)."""
COT = OneShot("cot", "CoT", ("cot/cot",), prompting.VotingOptions)
"""Reasoning before the answer (chain of thought; SG-FSM, appendix A.3), or a vote of several."""
SP_COT = OneShot("sp_cot", "SP-CoT", ("sp_cot/sp_cot",))
"""Reasoning by a named shape of decomposition (SP-CoT as SG-FSM's appendix A.3 has it)."""
