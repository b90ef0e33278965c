"""Answer a question over a knowledge graph without the graph: the baseline of Deliberation on Priors, Table 3.

A model in the role ``generator`` names the answers that it knows, in one call. They may be any names.
"""

from dataclasses import replace

from safe_stepwise import prompts
from safe_stepwise.engines.base import EngineError
from safe_stepwise.engines.client import Client
from safe_stepwise.methods import reading
from safe_stepwise.methods.path_deliberating import read_names
from safe_stepwise.methods.prompting import GENERATOR
from safe_stepwise.methods.scene import PoolScene
from safe_stepwise.records import ANSWERED, FAILED, KGQuestion, Trajectory

NAME, PROMPT = "no_graph", "deliberation/recall"
RECALL = "recall"
"""The state of the one attempt, whose record has the ``answers``."""


async def answer_alone(question: KGQuestion, client: Client) -> Trajectory:
    """Ask for the answers without a graph; ``failed`` if the request fails, ``unreadable`` if the reply has none."""
    prompt = prompts.load(PROMPT)
    request = prompt.request(prompt.messages(question=question.question), PoolScene(question, ()))
    try:
        reply = await client.complete(request)
    except EngineError as error:
        return Trajectory(question.id, NAME, (), (), "", FAILED, str(error))
    fields = {"answer": read_names, "reason": reading.reason}
    result = reading.read(reply.text, fields, [question.question]).with_reply(reply)
    attempt = reading.attempt_of(1, RECALL, reading.END, result, {GENERATOR: reply})
    answers = result.value.get("answer", [])
    recalled = replace(attempt, read={**attempt.read, "answers": answers})
    stop = reading.UNREADABLE if result.is_unreadable else ANSWERED
    return Trajectory(question.id, NAME, (), (recalled,), answers[0] if answers else "", stop)
