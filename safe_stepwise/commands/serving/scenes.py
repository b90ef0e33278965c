"""Reads the scene (question, passages, steps) back from a prompt, for players that need a row's annotations.

HTTP brings messages alone. Our prompts quote all data as JSON strings, one a line, so that question, passages, steps
and remarks can be read from them (no line of data begins as a line of ours does); the annotations come from the rows
that the server was started with.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from safe_stepwise import prompts
from safe_stepwise.commands.serving.chat import HttpRefusal, message_text
from safe_stepwise.engines.base import GREEDY, Message, Request, Sampling, Schema
from safe_stepwise.methods.generator import FINAL_ROLE
from safe_stepwise.methods.generator import ROLE as GENERATE
from safe_stepwise.methods.scene import JUDGE, AnswerScene, Scene
from safe_stepwise.methods.verifier import ROLE as VERIFY
from safe_stepwise.records import Feedback, Passage, Question
from safe_stepwise.steps import StepError, parse_step

_DECODER = json.JSONDecoder()
_PASSAGE = re.compile(r"Passage \d+(?: \(|: )(?=\")")
_LAST_CALL = "There is no room for another", "No step is left."
_ROLES = ("system", "user", "assistant")


class QuestionIndex:
    """The annotated questions of a stand-in, by their text."""

    def __init__(self, questions: Iterable[Question]) -> None:
        self._by_words = {prompts.defuse(question.question): question for question in questions}

    def __len__(self) -> int:
        return len(self._by_words)

    def scene(self, role: str, user: str) -> Scene | AnswerScene:
        """Read the scene from a user's message to a role; raises `HttpRefusal` for other prompts or questions."""
        try:
            return self._scene(role, user.split("\n"))
        except (ValueError, StepError, LookupError) as error:
            raise HttpRefusal(400, f"the prompt can't be read as one of ours ({error})") from None

    def _scene(self, role: str, lines: Sequence[str]) -> Scene | AnswerScene:
        if role == JUDGE:
            prediction = _value_after(lines, "Contestant's answer: ")
            return AnswerScene(prediction, tuple([json.loads(line[2:]) for line in lines if line.startswith('- "')]))
        question = self._question(_value_after(lines, "Question: "), _read_passages(lines))
        steps = tuple(parse_step(json.loads(line)) for line in lines if line.startswith('"'))
        if role == VERIFY and not steps:
            raise ValueError("it has no step to judge")
        if role == VERIFY:
            return Scene(question, previous=steps[:-1], step=steps[-1])
        return Scene(question, previous=steps, feedback=_last_rejection(lines))

    def _question(self, words: str, pages: Sequence[Passage]) -> Question:
        """Return the question of this text, with the passages of the prompt in their order."""
        if (question := self._by_words.get(words)) is None:
            raise HttpRefusal(
                400,
                f"the stand-in has no model: it knows the annotations of {len(self):,} questions, "
                "and this is none of them; see --examples and --questions",
            )
        originals = {prompts.defuse(page.text): page for page in question.passages}
        pages = tuple(originals.get(page.text, page) for page in pages)
        numbers = {prompts.defuse(page.text): n for n, page in enumerate(pages, 1)}
        texts = [prompts.defuse(page.text) for page in question.passages]
        hops = tuple(
            hop if hop.passage is None else replace(hop, passage=numbers.get(texts[hop.passage - 1]))
            for hop in question.decomposition
        )
        return replace(question, passages=pages, decomposition=hops)


def request_of(body: Mapping[str, Any], messages: Sequence[Any]) -> Request:
    """Make the request of a body of the protocol; its role is read from its prompt."""
    turns = tuple(_message(message) for message in messages)
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or GREEDY.max_tokens
    if type(limit) is not int or limit < 1:
        raise HttpRefusal(400, "max_completion_tokens has to be a whole number from 1 on")
    form = body.get("response_format")
    json_schema = form.get("json_schema") if isinstance(form, Mapping) else None
    schema = None
    if isinstance(json_schema, Mapping) and isinstance(json_schema.get("schema"), Mapping):
        schema = Schema.from_dict(str(json_schema.get("name")), json_schema["schema"])
    return Request(turns, Sampling(max_tokens=limit), schema, role_of(turns))


def role_of(turns: Sequence[Message]) -> str:
    """Return the role whose prompt these messages are; empty if no prompt of ours begins so.

    >>> from safe_stepwise.methods.generator import generator_request
    >>> oru = Passage("Oru", ("Oru lies on the Vel.",))
    >>> role_of(generator_request("Where?", [oru], [], final=True).messages)
    'final_answer'
    """
    system = turns[0].content if turns[0].role == "system" else ""
    role = next((r for text, r in _instructions() if system.startswith(text)), "")
    is_last_call = role == GENERATE and any(line.startswith(_LAST_CALL) for line in turns[-1].content.split("\n"))
    return FINAL_ROLE if is_last_call else role


@cache
def _instructions() -> tuple[tuple[str, str], ...]:
    """Pair the instructions (system messages) of our prompts with their roles, the longest first."""
    roles = {prompt.system: prompt.role for prompt in prompts.load_all() if prompt.system}
    return tuple(sorted(roles.items(), key=lambda entry: -len(entry[0])))


def _message(message: Any) -> Message:
    role = message.get("role") if isinstance(message, Mapping) else None
    if role not in _ROLES:
        raise HttpRefusal(400, f"a message's role is {', '.join(_ROLES)}, not {role!r}")
    return Message(role, message_text(message))


def _value_after(lines: Sequence[str], head: str) -> str:
    if (match := next((line for line in lines if line.startswith(f'{head}"')), None)) is None:
        raise ValueError(f"it has no line {head!r}")
    return str(json.loads(match[len(head) :]))


def _read_passages(lines: Sequence[str]) -> list[Passage]:
    passages = []
    for line in lines:
        if (head := _PASSAGE.match(line)) is None:
            continue
        title, text = "", ""
        if head[0].endswith("("):
            title, end = _DECODER.raw_decode(line, head.end())
            text = json.loads(line[end:].removeprefix("): "))
        else:
            text = json.loads(line[head.end() :])
        passages.append(Passage(title, (text,)))
    return passages


def _last_rejection(lines: Sequence[str]) -> Feedback | None:
    numbers = [number for number, line in enumerate(lines) if line.startswith('Rejected: "')]
    if not numbers:
        return None
    remarks = dict.fromkeys(("Fault", "Why", "Now"), "")
    for line in lines[numbers[-1] + 1 :]:
        name, _, value = line.partition(": ")
        if name in remarks:
            remarks[name] = str(json.loads(value))
    return Feedback(remarks["Fault"], remarks["Why"], remarks["Now"])
