"""A model's trajectories and injected steps, read as far as they can be, and what bars them.

`store.replies` finds the JSON. Marks of chat templates are broken up in what is kept.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from builders.steps.rows import TrajectoryError
from builders.verified.teachers.replies import ReplyClass, UnreadableReply, why_unreadable
from builders.verified.teachers.replies import one_line as plain_line
from safe_stepwise import prompts
from safe_stepwise.checking.step_reading import read_step
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.records import Step
from safe_stepwise.steps import StepError, format_step, parse_step
from safe_stepwise.store.replies import TOO_LONG, Reply, ReplyError, is_planted, is_quoted, plain_key, read_reply
from safe_stepwise.taxonomy import ERROR_TYPES

MOST_STEPS = 20
LONGEST_STEP = 1000
LONGEST_REMARK = 600
"""Characters of a diagnosis or guidance; what is longer is an essay, not a verdict."""
TWO_STEPS = "two steps in one"
UNREADABLE = "the reply is unreadable"
KEYS = ("step", "diagnosis", "guidance")

_NUMBERED = re.compile(r"\s*step\s*\d+\s*:", re.IGNORECASE)
_NUMBERED_LINE = re.compile(r"^[ \t\"'*>-]{0,8}(step[ \t]{1,3}\d{1,4}[ \t]?:.*)$", re.I | re.M)
_SECOND_STEP = re.compile(r"\bstep \d+:", re.IGNORECASE)
_SECOND_STEP_ERRORS = ("not atomic", "the step ends with two kinds")
_QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|‘[^’]*’")
_LETTERS = re.compile(r"[^\W\d_]+")
_CITED = re.compile(r"\b(passage|step)s? (\d+)", re.IGNORECASE)
_ENGLISH: frozenset[str] = frozenset(word_list("stop_words")) | frozenset(
    ("not", "but", "this", "step", "says", "states", "there", "then", "before", "already",
     "instead", "answer", "so", "than", "no", "none", "any", "about", "find", "read", "because",
     "here", "me", "what", "word")
)  # fmt: skip
_ENGLISH_OF_A_STEP = 0.1
"""Less than of a remark: a step quotes passages, in which foreign titles stand."""


@dataclass(frozen=True, slots=True)
class Written:
    """A step of a reply as written, and what the reply says of it, as one line each."""

    step: str
    diagnosis: str = ""
    guidance: str = ""

    @property
    def content(self) -> dict[str, str]:
        """By the keys that a reply has, for `is_planted`."""
        return {key: getattr(self, key) for key in KEYS}


class StepRefused(Exception):
    """A step or its remarks that are not kept; the message is the reason."""


def read_trajectory(text: str, data: str = "") -> tuple[tuple[Written, ...], ReplyClass]:
    """The steps of a reply as written; raises `UnreadableReply`.

    ``data`` is what the request quoted: steps that stand in it together are none. A step that comes
    as text alone is read, too: nothing is said of it.

    >>> read_trajectory('Sure: {"plan": [], "steps": ["Step 1: Oru. (Logical)"]}')
    ((Written(step='Step 1: Oru. (Logical)', diagnosis='', guidance=''),), 'salvaged')
    """
    reply = read_reply(text)
    if reply.is_too_long:
        raise UnreadableReply(TOO_LONG)
    broke_off = any(plain_key(key) == "steps" for broken in reply.broken for key in broken.keys)
    found = [] if broke_off else reply.outermost(lambda value: _steps(value) is not None)
    written = [steps for value in found if (steps := _steps(value)) is not None]
    lines = tuple(line.rstrip(" \t\r\",'") for line in _NUMBERED_LINE.findall(text))
    quoted = not written and is_quoted("".join(lines), data)
    if quoted or any(
        steps and is_planted({"steps": "".join(one.step for one in steps)}, ("steps",), data) for steps in written
    ):
        raise UnreadableReply("its steps are some that the data brought along, quoted")
    if not written:
        if lines:
            return tuple(map(Written, lines)), "salvaged"
        raise UnreadableReply(_why_unreadable(reply, text, "steps"))
    if any(steps != written[0] for steps in written):
        raise UnreadableReply("two different trajectories")
    return written[0], _class(reply, found[0])


def as_trajectory(written: Sequence[Written]) -> tuple[Step, ...]:
    """The steps, numbered from 1; raises `TrajectoryError` where they are no trajectory."""
    if not written:
        raise TrajectoryError("the trajectory is empty")
    if len(written) > MOST_STEPS:
        raise TrajectoryError(f"the trajectory is too long: {len(written)} steps")
    steps = []
    for position, one in enumerate(written, 1):
        try:
            steps.append(as_step(one.step, position))
        except StepRefused as error:
            reason = str(error).replace("the step breaks", "a step breaks", 1)
            raise TrajectoryError(f"{reason} (step {position})") from None
    ends = [step.number for step in steps if step.kind == "Final Answer"]
    if not ends:
        raise TrajectoryError("the trajectory has no final answer")
    if ends[0] != len(steps):
        raise TrajectoryError("the trajectory goes on after its answer")
    return tuple(steps)


def read_injection(text: str, data: str = "") -> tuple[Written, ReplyClass]:
    """The step, diagnosis and guidance of a reply.

    ``data`` is what the request quoted: remarks that stand in it are none.

    Raises `UnreadableReply`, and `StepRefused` for a reply with more than one step.

    >>> read_injection('{"step": "Step 1: Oru. (Logical)", "diagnosis": "No.", "guidance": "Go."}')
    (Written(step='Step 1: Oru. (Logical)', diagnosis='No.', guidance='Go.'), 'clean')
    """
    reply = read_reply(text)
    try:
        found = reply.answers(*KEYS, data=data)
    except ReplyError as error:
        raise UnreadableReply(str(error)) from None
    if not found:
        raise UnreadableReply(_why_unreadable(reply, text, "step"))
    value = found[0]
    if any(other != value for other in found):
        raise StepRefused(f"{TWO_STEPS}: the reply gives several")
    step = value["step"]
    if isinstance(step, list) and len(step) == 1:
        step = step[0]
    if isinstance(step, list) and step:
        raise StepRefused(f"{TWO_STEPS}: the reply gives several")
    if not isinstance(step, str):
        raise UnreadableReply("its step is no text")
    return _written(step, value), _class(reply, value)


def check_injection(text: str, data: str = "") -> None:
    """Raise `UnreadableReply` as `read_injection` does; of several steps one can be read."""
    with suppress(StepRefused):
        read_injection(text, data)


def as_step(written: str, position: int) -> Step:
    """A step at a position, on one line; a missing "Step K:" is added.

    Raises `StepRefused` for one that breaks the grammar, is two in one or is not in English.

    >>> as_step("According to Passage 2, Oru lies on the Vel. (Attribution)", 1).number
    1
    """
    if len(written) > LONGEST_STEP:
        raise StepRefused(f"the step breaks the grammar: {len(written)} characters are too many")
    text = "\n".join(written.strip().splitlines())
    if not _NUMBERED.match(text):
        text = f"Step {position}: {text}"
    try:
        read = parse_step(text)
        step = replace(read, text=one_line(read.text))
        format_step(step)
    except StepError as error:
        said = str(error)
        clause = TWO_STEPS if said.startswith(_SECOND_STEP_ERRORS) else "the step breaks the grammar"
        raise StepRefused(f"{clause}: {one_line(said)}") from None
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


def check_remarks(said: Written, error_type: str, passages: int, position: int) -> None:
    """Raise `StepRefused` for a diagnosis or guidance that no verifier should learn.

    ``passages`` is how many there are, ``position`` that of the step.
    """
    for what, text in (("diagnosis", said.diagnosis), ("guidance", said.guidance)):
        if not any(map(str.isalnum, text)):
            raise StepRefused(f"the {what} is empty")
        if len(text) > LONGEST_REMARK:
            raise StepRefused(f"the {what} is too long: {len(text)} characters")
        if not is_english(text):
            raise StepRefused(f"the {what} is not in English")
        for other in ERROR_TYPES:
            if other.name != error_type and other.name in text:
                raise StepRefused(f"two errors at once: the {what} names {other.name}")
        for noun, number in _CITED.findall(text):
            limit = passages if noun.lower() == "passage" else position + (what == "guidance")
            if not 1 <= int(number[:9]) <= limit:
                raise StepRefused(f"the {what} cites what is not there: {noun} {number[:9]}")


def is_english(text: str, least: float = 0.2) -> bool:
    """Whether a text can be English, as far as its script and everyday words tell.

    ``least`` is the number of everyday words it must have for each word in lower case.

    >>> is_english("Passage 2 says that Oru lies on the Vel.")
    True
    >>> is_english("Laut Passage 2 liegt Oru auf der linken Seite des Vel.")
    False
    """
    text = _QUOTED.sub(" ", text)
    letters = [letter for letter in text if letter.isalpha()]
    latin = sum(letter < "\u0250" or "LATIN" in unicodedata.name(letter, "") for letter in letters)
    if letters and latin < len(letters) / 2:
        return False
    words: list[str] = _LETTERS.findall(text)
    lower = sum(word.islower() for word in words)
    return lower < 4 or sum(word.lower() in _ENGLISH for word in words) >= least * lower


def one_line(value: Any) -> str:
    """Text of a reply on one line, as UTF-8 can hold it, marks of chat templates broken up.

    >>> one_line("End here: <|im_end|>\\nWrite ####ANSWER: <answer>.")
    'End here: < |im_end|> Write ####ANSWER: <answer>.'
    """
    text = plain_line(value) if isinstance(value, str) else ""
    safe = prompts.defuse("".join(c for c in text if c.isprintable()))
    return safe.replace("< answer>", "<answer>")  # our own way to ask for it, and no mark


def _class(reply: Reply, value: Any) -> ReplyClass:
    return "clean" if reply.is_clean and value == reply.values[0] else "salvaged"


def _written(step: str, value: Mapping[str, Any]) -> Written:
    return Written(step, one_line(value.get("diagnosis")), one_line(value.get("guidance")))


def _steps(value: Any) -> tuple[Written, ...] | None:
    """The steps of a trajectory: under their key, or a bare list of numbered steps."""
    listed = value.get("steps") if isinstance(value, dict) else value
    if not isinstance(listed, list):
        return None
    found: list[Written] = []
    for one in listed:
        fields = {plain_key(key): said for key, said in one.items()} if isinstance(one, dict) else {}
        text = fields.get("step", fields.get("text")) if fields else one
        if not isinstance(text, str):
            return None
        found.append(_written(text, fields))
    numbered = all(_NUMBERED.match(one.step) for one in found)
    return None if isinstance(value, list) and not (found and numbered) else tuple(found)


def _why_unreadable(reply: Reply, text: str, what: str) -> str:
    has_objects = reply.outermost(lambda value: isinstance(value, dict))
    return f"it has no {what}" if has_objects else why_unreadable(text)
