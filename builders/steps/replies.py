"""Reads trajectories and injected steps from a model's replies, and refuses bad ones with a reason.

`remarks` judges what a reply says about its steps.
`store.replies` finds the JSON. Marks of chat templates are broken up in the texts that are kept.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from builders.steps.rows import KEYS, ReplyStep, StepRefused, TrajectoryError
from builders.steps.values import is_english
from builders.verified.teachers.llm import LLMTeachers
from builders.verified.teachers.replies import UnreadableReply, one_line, why_unreadable
from safe_stepwise import prompts
from safe_stepwise.checking.step_reading import read_step
from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.records import Step
from safe_stepwise.steps import StepError, check_claim, format_step, parse_step
from safe_stepwise.store.names import REQUEST_FAILED
from safe_stepwise.store.replies import TOO_LONG, Reply, ReplyError, is_planted, is_quoted, plain_key, read_reply

MAX_STEPS = 20
MAX_STEP_CHARS = 1000
TWO_STEPS = "two steps in one"
UNREADABLE = "the reply is unreadable"
R = TypeVar("R")

_NUMBERED = re.compile(r"\s*step\s*\d+\s*:", re.IGNORECASE)
_NUMBERED_LINE = re.compile(r"^[ \t\"'*>-]{0,8}(step[ \t]{1,3}\d{1,4}[ \t]?:.*)$", re.I | re.M)
_SECOND_STEP = re.compile(r"\bstep \d+:", re.IGNORECASE)
_SECOND_STEP_ERRORS = ("not atomic", "the step ends with two kinds")
_ENGLISH_OF_A_STEP = 0.1
"""Lower than for remarks, as a step quotes passages with foreign titles."""


@dataclass(frozen=True)
class ModelAsker:
    """Asks a model through the client of ``teachers``, which verification in this process shares."""

    teachers: LLMTeachers

    @property
    def simulated(self) -> bool:
        return self.teachers.engine.simulated

    @property
    def client(self) -> Client:
        return self.teachers.client

    async def ask_model(self, request: Request, read: Callable[[str, str], R], quoted: str) -> R:
        """Return what ``read`` makes of reply and ``quoted``; raise `StepRefused`, or ``UserError`` if all are bad."""
        try:
            async with self.client.reading(request) as reply:
                return read(reply.text, quoted)
        except EngineError as error:
            raise StepRefused(f"{REQUEST_FAILED}: {safe_line(str(error))}") from None
        except UnreadableReply as error:
            raise StepRefused(f"{UNREADABLE}: {error}", reply.text) from None
        except StepRefused as error:
            raise StepRefused(str(error), reply.text) from None

    def check(self) -> None:
        self.teachers.check()

    def close(self) -> None:
        self.teachers.close()


def read_trajectory(text: str, data: str = "") -> tuple[ReplyStep, ...]:
    """Read a reply's steps; raise `UnreadableReply` if it has none, or several trajectories.

    ``data`` are the texts that the prompt quoted: steps copied from there do not count.
    """
    reply = read_reply(text)
    if reply.is_too_long:
        raise UnreadableReply(TOO_LONG)
    broke_off = any(plain_key(key) == "steps" for broken in reply.broken for key in broken.keys)
    values = [] if broke_off else reply.outermost(lambda value: _read_steps(value) is not None)
    replied = [steps for value in values if (steps := _read_steps(value)) is not None]
    lines = tuple(line.rstrip(" \t\r\",'") for line in _NUMBERED_LINE.findall(text))
    quoted = not replied and is_quoted("".join(lines), data)
    if quoted or any(
        steps and is_planted({"steps": "".join(step.step for step in steps)}, ("steps",), data) for steps in replied
    ):
        raise UnreadableReply("its steps are copied from the texts that the prompt quotes")
    if not replied:
        if lines:
            return tuple(map(ReplyStep, lines))
        raise UnreadableReply(_why_unreadable(reply, text, "steps"))
    if any(steps != replied[0] for steps in replied):
        raise UnreadableReply("two different trajectories")
    return replied[0]


def as_trajectory(replied: Sequence[ReplyStep]) -> tuple[Step, ...]:
    """Parse steps that are numbered from 1; raise `TrajectoryError` if they are not a trajectory."""
    if not replied:
        raise TrajectoryError("the trajectory is empty")
    if len(replied) > MAX_STEPS:
        raise TrajectoryError(f"the trajectory is too long: {len(replied)} steps")
    steps = []
    for position, reply_step in enumerate(replied, 1):
        try:
            steps.append(as_step(reply_step.step, position))
        except StepRefused as error:
            reason = str(error).replace("the step breaks", "a step breaks", 1)
            raise TrajectoryError(f"{reason} (step {position})") from None
    ends = [step.number for step in steps if step.kind == "Final Answer"]
    if not ends:
        raise TrajectoryError("the trajectory has no final answer")
    if ends[0] != len(steps):
        raise TrajectoryError("the trajectory goes on after its answer")
    return tuple(steps)


def read_step_reply(text: str, data: str = "") -> ReplyStep:
    """Read a reply's step and remarks outside ``data``; raise `UnreadableReply`, or `StepRefused` for several."""
    reply = read_reply(text)
    try:
        answers = reply.answers(*KEYS, data=data)
    except ReplyError as error:
        raise UnreadableReply(str(error)) from None
    if not answers:
        raise UnreadableReply(_why_unreadable(reply, text, "step"))
    value = answers[0]
    if any(repeat != value for repeat in answers):
        raise StepRefused(f"{TWO_STEPS}: the reply gives several")
    step = value["step"]
    if isinstance(step, list) and len(step) == 1:
        step = step[0]
    if isinstance(step, list) and step:
        raise StepRefused(f"{TWO_STEPS}: the reply gives several")
    if not isinstance(step, str):
        raise UnreadableReply("its step is no text")
    return _reply_step(step, value)


def as_step(raw: str, position: int) -> Step:
    """Parse a step; raise `StepRefused` for one that breaks the grammar, is two in one or is not in English.

    >>> as_step("According to Passage 2, Oru lies on the Vel. (Attribution)", 1).number
    1
    """
    if len(raw) > MAX_STEP_CHARS:
        raise StepRefused(f"the step breaks the grammar: {len(raw)} characters are too many")
    text = "\n".join(raw.strip().splitlines())
    if not _NUMBERED.match(text):
        text = f"Step {position}: {text}"
    try:
        parsed = check_claim(parse_step(text))
        step = replace(parsed, text=safe_line(parsed.text))
        format_step(step)
    except StepError as error:
        reason = str(error)
        clause = TWO_STEPS if reason.startswith(_SECOND_STEP_ERRORS) else "the step breaks the grammar"
        raise StepRefused(f"{clause}: {safe_line(reason)}") from None
    if step.number != position:
        raise StepRefused(f"the step breaks the grammar: it is numbered {step.number}, not {position}")
    if _SECOND_STEP.search(step.text):
        raise StepRefused(f"{TWO_STEPS}: a second one is numbered in it")
    if step.kind != "Final Answer":
        reading = read_step(step.text)
        if step.kind == "Attribution" and len(reading.cited) > 1 and not reading.denies:
            raise StepRefused(f"{TWO_STEPS}: it reads {len(reading.cited)} passages")
        if not is_english(step.text, _ENGLISH_OF_A_STEP):
            raise StepRefused("the step is not in English")
    return step


def safe_line(value: Any) -> str:
    """Put a reply's text on one line, in valid UTF-8, with marks of chat templates broken up.

    >>> safe_line("End here: <|im_end|>\\nWrite ####ANSWER: <answer>.")
    'End here: < |im_end|> Write ####ANSWER: <answer>.'
    """
    text = one_line(value) if isinstance(value, str) else ""
    safe = prompts.defuse("".join(c for c in text if c.isprintable()))
    return safe.replace("< answer>", "<answer>")  # our own way to ask for it, and no mark


def _reply_step(step: str, value: Mapping[str, Any]) -> ReplyStep:
    return ReplyStep(step, safe_line(value.get("diagnosis")), safe_line(value.get("guidance")))


def _read_steps(value: Any) -> tuple[ReplyStep, ...] | None:
    """Read the steps of a trajectory, under their key or as a bare list of numbered steps; None for another value."""
    listed = value.get("steps") if isinstance(value, dict) else value
    if not isinstance(listed, list):
        return None
    steps: list[ReplyStep] = []
    for item in listed:
        fields = {plain_key(key): field_value for key, field_value in item.items()} if isinstance(item, dict) else {}
        text = fields.get("step", fields.get("text")) if fields else item
        if not isinstance(text, str):
            return None
        steps.append(_reply_step(text, fields))
    numbered = all(_NUMBERED.match(item.step) for item in steps)
    return None if isinstance(value, list) and not (steps and numbered) else tuple(steps)


def _why_unreadable(reply: Reply, text: str, content: str) -> str:
    has_objects = reply.outermost(lambda value: isinstance(value, dict))
    return f"it has no {content}" if has_objects else why_unreadable(text)
