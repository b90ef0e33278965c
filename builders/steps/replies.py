"""Reads trajectories and injected steps from a model's replies, and refuses bad ones with a reason.

`store.replies` finds the JSON. Marks of chat templates are broken up in the texts that are kept.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from builders.steps.rows import TrajectoryError
from builders.steps.values import occurs_in_any, values_in, words
from builders.verified.teachers.llm import LLMTeachers
from builders.verified.teachers.replies import UnreadableReply, why_unreadable
from builders.verified.teachers.replies import one_line as plain_line
from safe_stepwise import prompts
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.step_reading import read_step
from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.language.mentions import first_mention
from safe_stepwise.language.reading import read
from safe_stepwise.language.text import has_words, words_of
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.records import Passage, Question, Step
from safe_stepwise.steps import StepError, check_claim, format_step, parse_step
from safe_stepwise.store.names import REQUEST_FAILED
from safe_stepwise.store.replies import TOO_LONG, Reply, ReplyError, is_planted, is_quoted, plain_key, read_reply
from safe_stepwise.taxonomy import CORRECT, ERROR_TYPES

MAX_STEPS = 20
MAX_STEP_CHARS = 1000
MAX_REMARK_CHARS = 600
"""Characters of a diagnosis or guidance; what is longer is an essay, not a verdict."""
TWO_STEPS = "two steps in one"
UNREADABLE = "the reply is unreadable"
KEYS = ("step", "diagnosis", "guidance")
R = TypeVar("R")

_NUMBERED = re.compile(r"\s*step\s*\d+\s*:", re.IGNORECASE)
_NUMBERED_LINE = re.compile(r"^[ \t\"'*>-]{0,8}(step[ \t]{1,3}\d{1,4}[ \t]?:.*)$", re.I | re.M)
_SECOND_STEP = re.compile(r"\bstep \d+:", re.IGNORECASE)
_SECOND_STEP_ERRORS = ("not atomic", "the step ends with two kinds")
_QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|‘[^’]*’")
_LETTERS = re.compile(r"[^\W\d_]+")
_CITED = re.compile(r"\b(passage|step)s? (\d+)", re.IGNORECASE)
_ENGLISH = words("english") | word_list("stop_words")
_ENGLISH_OF_A_STEP = 0.1
"""Less than of a remark: a step quotes passages, in which foreign titles stand."""


@dataclass(frozen=True, slots=True)
class ReplyStep:
    """A step of a reply as written, with the reply's remarks on it, one line each."""

    step: str
    diagnosis: str = ""
    guidance: str = ""


class StepRefused(Exception):
    """Raised when a step or its remarks are refused; ``text`` is the model's reply, if there was one."""

    def __init__(self, reason: str, text: str = "") -> None:
        super().__init__(reason)
        self.text = text


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
            raise StepRefused(f"{REQUEST_FAILED}: {one_line(str(error))}") from None
        except UnreadableReply as error:
            raise StepRefused(f"{UNREADABLE}: {error}", reply.text) from None
        except StepRefused as error:
            raise StepRefused(str(error), reply.text) from None

    def check(self) -> None:
        self.teachers.check()

    def close(self) -> None:
        self.teachers.close()


def read_trajectory(text: str, data: str = "") -> tuple[ReplyStep, ...]:
    """Read a reply's steps outside ``data``; raise `UnreadableReply` if it has none, or several trajectories.

    >>> read_trajectory('Sure: {"plan": [], "steps": ["Step 1: Oru. (Logical)"]}')
    (ReplyStep(step='Step 1: Oru. (Logical)', diagnosis='', guidance=''),)
    """
    reply = read_reply(text)
    if reply.is_too_long:
        raise UnreadableReply(TOO_LONG)
    broke_off = any(plain_key(key) == "steps" for broken in reply.broken for key in broken.keys)
    values = [] if broke_off else reply.outermost(lambda value: _steps(value) is not None)
    replied = [steps for value in values if (steps := _steps(value)) is not None]
    lines = tuple(line.rstrip(" \t\r\",'") for line in _NUMBERED_LINE.findall(text))
    quoted = not replied and is_quoted("".join(lines), data)
    if quoted or any(
        steps and is_planted({"steps": "".join(step.step for step in steps)}, ("steps",), data) for steps in replied
    ):
        raise UnreadableReply("its steps are some that the data brought along, quoted")
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
    """Read a reply's step and remarks outside ``data``; raise `UnreadableReply`, or `StepRefused` for several steps.

    >>> read_step_reply('{"step": "Step 1: Oru. (Logical)", "diagnosis": "No.", "guidance": "Go."}')
    ReplyStep(step='Step 1: Oru. (Logical)', diagnosis='No.', guidance='Go.')
    """
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
        step = replace(parsed, text=one_line(parsed.text))
        format_step(step)
    except StepError as error:
        reason = str(error)
        clause = TWO_STEPS if reason.startswith(_SECOND_STEP_ERRORS) else "the step breaks the grammar"
        raise StepRefused(f"{clause}: {one_line(reason)}") from None
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


def check_verdict(
    checker: Checker, previous: Sequence[Step], step: Step, label: str, remarks: ReplyStep, passages: int
) -> None:
    """Raise `StepRefused` unless the checker finds the label in the step, and for remarks that give a result away."""
    verdict = checker.check(previous, step)
    if verdict is None or verdict.error_type != label:
        raise StepRefused(f"the checker {'abstains' if verdict is None else f'finds {verdict.error_type}'}")
    check_remarks(remarks, label, passages, step.number)
    if gives_away(checker, (*previous, step), remarks.guidance, is_sound=label == CORRECT):
        raise StepRefused(GIVES_AWAY)


def check_remarks(remarks: ReplyStep, error_type: str, passages: int, position: int) -> None:
    """Raise `StepRefused` for remarks, on the step at ``position``, that no verifier should learn."""
    for label, text in (("diagnosis", remarks.diagnosis), ("guidance", remarks.guidance)):
        if not any(map(str.isalnum, text)):
            raise StepRefused(f"the {label} is empty")
        if len(text) > MAX_REMARK_CHARS:
            raise StepRefused(f"the {label} is too long: {len(text)} characters")
        if not is_english(text):
            raise StepRefused(f"the {label} is not in English")
        for error_type_ in ERROR_TYPES:
            if error_type_.name != error_type and error_type_.name in text:
                raise StepRefused(f"two errors at once: the {label} names {error_type_.name}")
        for noun, number in _CITED.findall(text):
            limit = passages if noun.lower() == "passage" else position + (label == "guidance")
            if not 1 <= int(number[:9]) <= limit:
                raise StepRefused(f"the {label} cites what is not there: {noun} {number[:9]}")


def is_english(text: str, min_share: float = 0.2) -> bool:
    """Whether a text can be English: its script, and ``min_share`` everyday words for each word in lower case.

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
    return lower < 4 or sum(word.lower() in _ENGLISH for word in words) >= min_share * lower


def one_line(value: Any) -> str:
    """Put a reply's text on one line, in valid UTF-8, with marks of chat templates broken up.

    >>> one_line("End here: <|im_end|>\\nWrite ####ANSWER: <answer>.")
    'End here: < |im_end|> Write ####ANSWER: <answer>.'
    """
    text = plain_line(value) if isinstance(value, str) else ""
    safe = prompts.defuse("".join(c for c in text if c.isprintable()))
    return safe.replace("< answer>", "<answer>")  # our own way to ask for it, and no mark


def _reply_step(step: str, value: Mapping[str, Any]) -> ReplyStep:
    return ReplyStep(step, one_line(value.get("diagnosis")), one_line(value.get("guidance")))


def _steps(value: Any) -> tuple[ReplyStep, ...] | None:
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


GIVES_AWAY = "the guidance gives away a later result"

_PASSAGE = re.compile(r"\bpassages? (\d{1,9})", re.IGNORECASE)
_STEP = re.compile(r"\bsteps? \d", re.IGNORECASE)
_STEPS = re.compile(r"\bsteps?\b|\bpassage \d", re.IGNORECASE)
_MARK = re.compile(r"####ANSWER:(?: <answer>)?")
_ANSWERED = re.compile(r"\banswer(?: is| must be| has to be| will be)?\W{1,4}", re.IGNORECASE)


def check_sound(question: Question, steps: Sequence[Step], position: int, remarks: ReplyStep, data: str = "") -> None:
    """Raise `StepRefused` for remarks on a sound step that no verifier should learn, or that occur in ``data``."""
    check_remarks(remarks, CORRECT, len(question.passages), position)
    if data and is_planted(asdict(remarks), KEYS, data):
        raise StepRefused("the remarks are some that the data brought along, quoted")
    step, accepted = steps[position - 1], steps[:position]
    cited = set(_PASSAGE.findall(step.text))
    if step.kind == "Attribution":
        if cited and cited.isdisjoint(_PASSAGE.findall(remarks.diagnosis)):
            raise StepRefused("the diagnosis does not name the passage that the step reads")
    elif step.number > 1 and not (_STEP if step.kind == "Logical" else _STEPS).search(remarks.diagnosis):
        raise StepRefused("the diagnosis names no step that this one rests on")
    check_grounded(question, accepted, remarks)
    if foretells(question, accepted, steps[position:], remarks.guidance):
        raise StepRefused(GIVES_AWAY)


def check_grounded(question: Question, accepted: Sequence[Step], remarks: ReplyStep) -> None:
    """Raise `StepRefused` for a remark with a name or number that no passage, question or step so far has."""
    pages = (*question.passages, _context(question, accepted))
    for label in ("diagnosis", "guidance"):
        for value in values_in(_MARK.sub("", getattr(remarks, label))):
            if not occurs_in_any(value, pages) and not _akin(value, pages):
                raise StepRefused(f"the {label} names what stands nowhere: {value[:80]}")


def foretells(question: Question, accepted: Sequence[Step], coming: Sequence[Step], guidance: str) -> bool:
    """Whether a guidance names the answer or a later value, but for the subject of the passage to be cited next."""
    context = _context(question, accepted)
    if names_answer(question, accepted, guidance):
        return True
    named_values = [value for value in values_in(_MARK.sub("", guidance)) if not occurs_in_any(value, [context])]
    numbers = [int(number) for step in coming[:1] for number in _PASSAGE.findall(step.text)]
    next_titles = [Passage("", (question.passages[n - 1].title,)) for n in numbers if 0 < n <= len(question.passages)]
    later = [Passage("", (step.text,)) for step in coming]
    return any(occurs_in_any(value, later) and not occurs_in_any(value, next_titles) for value in named_values)


def names_answer(question: Question, accepted: Sequence[Step], guidance: str) -> bool:
    """Whether a guidance names the answer before any ``accepted`` step, the present one included, has reached it."""
    guidance_words, question_words = words_of(guidance), words_of(question.question)
    before = words_of(_context(question, accepted).text)
    for answer in map(words_of, question.accepted):
        # "Yes" and "no" are words like others, and a question may name the things to choose from:
        # there it counts whether the guidance calls one of them the answer.
        if answer in ("yes", "no") or has_words(question_words, answer):
            concluded = any(s.kind != "Attribution" and has_words(words_of(s.text), answer) for s in accepted)
            ends = (words_of(guidance[match.end() :]) for match in _ANSWERED.finditer(guidance))
            if any(f"{end} ".startswith(f"{answer} ") for end in ends) and not concluded:
                return True
        elif has_words(guidance_words, answer) and not has_words(before, answer):
            return True
    return False


def _akin(value: str, pages: Sequence[Passage]) -> bool:
    """Whether the texts have each word of a name with another ending, as demonyms do."""
    text_words = set(words_of(" ".join(f"{page.title} {page.text}" for page in pages)).split())
    stems = [word[: max(4, len(word) - 3)] for word in words_of(value).split()]
    return not value[:1].isdigit() and all(any(word.startswith(stem) for word in text_words) for stem in stems)


def _context(question: Question, accepted: Sequence[Step]) -> Passage:
    """Return the question and the steps so far as one text to search."""
    return Passage("", (question.question, *(step.text for step in accepted)))


def gives_away(checker: Checker, accepted: Sequence[Step], guidance: str, *, is_sound: bool) -> bool:
    """Whether a guidance names a value that only a later step finds; after an unsound step the next is allowed."""
    established = checker.established(accepted if is_sound else accepted[:-1])
    allowed: set[int | None] = {*established} if is_sound else {*established, checker.next_item(established)}
    texts = [checker.question.question, *(step.text for step in accepted)]
    context, guide = read(Passage("", (" ".join(texts),))), read(Passage("", (guidance,)))
    for index in checker.plan.facts:
        item = checker.plan.items[index]
        # A fact in a passage's own words is requested by the title of that passage.
        if index in allowed or item.sentence is not None:
            continue
        value = checker.claims.value_of(item)
        if first_mention(guide, value) is not None and first_mention(context, value) is None:
            return True
    return False
