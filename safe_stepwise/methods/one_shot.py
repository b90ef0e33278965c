"""Methods that answer in one reply: instructions, passages, question, and JSON as the reply.

Several samples are put to the vote (self-consistency, Wang et al., 2022). Nobody revises a reply:
one that cannot be read strictly is wrong, or salvaged where a score says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from safe_stepwise.engines.base import EngineError
from safe_stepwise.engines.client import Client
from safe_stepwise.methods.asking import (
    ANSWERING,
    END,
    GENERATOR,
    UNREADABLE,
    answer_fields,
    attempt_of,
    request_of,
    texts_of,
    voted,
)
from safe_stepwise.methods.prompting import Prompting, Samples
from safe_stepwise.methods.reading import read
from safe_stepwise.methods.scene import AskedScene
from safe_stepwise.records import ANSWERED, FAILED, Attempt, Question, Trajectory


@dataclass
class OneShot:
    """A method that is one prompt file."""

    name: str
    title: str
    prompts: tuple[str, ...]
    options: type[Prompting] = Prompting
    roles: tuple[str, ...] = (GENERATOR,)

    async def answer(self, question: Question, clients: Mapping[str, Client], options: Prompting) -> Trajectory:
        """Everything that was done to answer one question."""
        samples = options.samples if isinstance(options, Samples) else 1
        tries: list[Attempt] = []
        failure = ""
        try:
            for number in range(samples):
                tries.append(await self._try(question, clients, options, number, samples))
        except EngineError as error:
            failure = str(error)
        answer = "" if failure else str(voted(tries).get("answer", ""))
        stop = FAILED if failure else ANSWERED if answer else UNREADABLE
        return Trajectory(question.id, self.name, (), tuple(tries), answer, stop, failure)

    async def _try(
        self, question: Question, clients: Mapping[str, Client], options: Prompting, number: int, samples: int
    ) -> Attempt:
        passages = question.passages
        request = request_of(
            self.prompts[0],
            options,
            AskedScene(question, options.evidence),
            seed=number if samples > 1 else None,
            question=question.question,
            passages=passages,
        )
        reply = await clients[GENERATOR].ask(request)
        fields = answer_fields(passages, options.evidence)
        quoted = texts_of(passages, question.question)
        reading = read(reply.text, fields, quoted, last="answer")
        return attempt_of(number + 1, ANSWERING, END, reading, {GENERATOR: reply.usage})
