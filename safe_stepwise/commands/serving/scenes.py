"""From the words of a prompt back to what was asked, for players that go by a row's annotations.

Over HTTP come messages alone. Prompts quote all data as JSON strings, one a line, so that question,
passages, steps and remarks can be read from them (no line of data begins as ours do); the rest is
what rows that are known say.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from safe_stepwise import prompts
from safe_stepwise.commands.serving.chat import Refused, text_of
from safe_stepwise.engines.base import GREEDY, Message, Request, Sampling, Schema
from safe_stepwise.methods.generator import FINAL_ROLE
from safe_stepwise.methods.generator import ROLE as GENERATE
from safe_stepwise.methods.scene import JUDGE, AnswerScene, Scene
from safe_stepwise.methods.verifier import ROLE as VERIFY
from safe_stepwise.records import Feedback, Passage, Question, Step
from safe_stepwise.steps import StepError, parse_step

_DECODER = json.JSONDecoder()
_PASSAGE = re.compile(r"Passage \d+(?: \(|: )(?=\")")
_LAST_CALL = "There is no room for another", "No step is left."
_ROLES = ("system", "user", "assistant")


class Known:
    """The questions that a stand-in knows, by their words."""

    def __init__(self, questions: Iterable[Question]) -> None:
        self._by_words = {prompts.defuse(asked.question): asked for asked in questions}

    def __len__(self) -> int:
        return len(self._by_words)

    def scene(self, role: str, user: str) -> Scene | AnswerScene:
        """What a turn of the user asks of a role; raises `Refused` where nothing is known of it."""
        try:
            return self._scene(role, user.split("\n"))
        except (ValueError, StepError, LookupError) as error:
            raise Refused(400, f"the prompt can't be read as one of ours ({error})") from None

    def _scene(self, role: str, lines: Sequence[str]) -> Scene | AnswerScene:
        if role == JUDGE:
            told = _after(lines, "Contestant's answer: ")
            accepted = [json.loads(line[2:]) for line in lines if line.startswith('- "')]
            return AnswerScene(told, tuple(accepted))
        question = self._question(_after(lines, "Question: "), _passages(lines))
        steps = tuple(parse_step(json.loads(line)) for line in lines if line.startswith('"'))
        if role == VERIFY:
            return Scene(question, previous=steps[:-1], step=_last(steps))
        return Scene(question, previous=steps, feedback=_rejection(lines))

    def _question(self, words: str, shown: Sequence[Passage]) -> Question:
        """The known question of these words, with the passages that are shown."""
        known = self._by_words.get(words)
        if known is None:
            raise Refused(
                400,
                f"the stand-in has no model: it knows the annotations of {len(self):,} questions, "
                "and this is none of them; see --examples and --questions",
            )
        ours = {prompts.defuse(page.text): page for page in known.passages}
        pages = tuple(ours.get(page.text, page) for page in shown)
        place = {prompts.defuse(page.text): n for n, page in enumerate(pages, 1)}
        texts = [prompts.defuse(page.text) for page in known.passages]
        hops = tuple(
            hop if hop.passage is None else replace(hop, passage=place.get(texts[hop.passage - 1]))
            for hop in known.decomposition
        )
        return replace(known, passages=pages, decomposition=hops)


def request_of(body: Mapping[str, Any], messages: Sequence[Any]) -> Request:
    """The request behind a body of the protocol, its role read from its prompt."""
    turns = tuple(_message(message) for message in messages)
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or GREEDY.max_tokens
    if type(limit) is not int or limit < 1:
        raise Refused(400, "max_completion_tokens has to be a whole number from 1 on")
    form = body.get("response_format")
    asked = form.get("json_schema") if isinstance(form, Mapping) else None
    schema = None
    if isinstance(asked, Mapping) and isinstance(asked.get("schema"), Mapping):
        schema = Schema.from_dict(str(asked.get("name")), asked["schema"])
    return Request(turns, Sampling(max_tokens=limit), schema, role_of(turns))


def role_of(turns: Sequence[Message]) -> str:
    """Who asks by these turns; empty where no prompt of ours begins so.

    >>> from safe_stepwise.methods.generator import generator_request
    >>> oru = Passage("Oru", ("Oru lies on the Vel.",))
    >>> role_of(generator_request("Where?", [oru], [], final=True).messages)
    'final_answer'
    """
    system = turns[0].content if turns[0].role == "system" else ""
    role = next((r for text, r in _instructions() if system.startswith(text)), "")
    lines = turns[-1].content.split("\n")
    is_last_call = role == GENERATE and any(line.startswith(_LAST_CALL) for line in lines)
    return FINAL_ROLE if is_last_call else role


@cache
def _instructions() -> tuple[tuple[str, str], ...]:
    """Instructions, the longest first, and who asks by them."""
    found = {prompt.system: prompt.role for prompt in prompts.load_all() if prompt.system}
    return tuple(sorted(found.items(), key=lambda one: -len(one[0])))


def _message(message: Any) -> Message:
    role = message.get("role") if isinstance(message, Mapping) else None
    if role not in _ROLES:
        raise Refused(400, f"a message's role is {', '.join(_ROLES)}, not {role!r}")
    return Message(role, text_of(message))


def _after(lines: Sequence[str], head: str) -> str:
    found = next((line for line in lines if line.startswith(f'{head}"')), None)
    if found is None:
        raise ValueError(f"it has no line {head!r}")
    return str(json.loads(found[len(head) :]))


def _passages(lines: Sequence[str]) -> list[Passage]:
    found = []
    for line in lines:
        if (head := _PASSAGE.match(line)) is None:
            continue
        title, text = "", ""
        if head[0].endswith("("):
            title, end = _DECODER.raw_decode(line, head.end())
            text = json.loads(line[end:].removeprefix("): "))
        else:
            text = json.loads(line[head.end() :])
        found.append(Passage(title, (text,)))
    return found


def _last(steps: Sequence[Step]) -> Step:
    if not steps:
        raise ValueError("it has no step to judge")
    return steps[-1]


def _rejection(lines: Sequence[str]) -> Feedback | None:
    """What was said of the last try that was rejected."""
    places = [place for place, line in enumerate(lines) if line.startswith('Rejected: "')]
    if not places:
        return None
    told = dict.fromkeys(("Fault", "Why", "Now"), "")
    for line in lines[places[-1] + 1 :]:
        name, _, said = line.partition(": ")
        if name in told:
            told[name] = str(json.loads(said))
    return Feedback(told["Fault"], told["Why"], told["Now"])
