"""Read the fields of a reply in JSON: strictly, or salvaged, or not at all.

A *strict* reply has exactly one valid JSON object (perhaps in a code fence) with every field in its type. A reply is
*salvaged* if it can still be read without guessing: an object in prose or with a trailing comma, "false" as text, a
last line ``Answer: Marn``. Scores count the two apart (SG-FSM's *format*), and machines move by strict readings only.

An object that the reply only copies from the request counts as neither, since passages may contain such objects.

A *field reader* turns a field's value into what it means: `words`, `flag`, `number_in` and so on. With ``salvaging``
it also takes values of other types that leave no doubt; it raises ``ValueError`` for any other value.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from safe_stepwise.engines.base import Completion, EngineError, collect_thoughts
from safe_stepwise.records import FAILED, Attempt, Feedback, Passage, canonical_json
from safe_stepwise.store.boundary import parse_json
from safe_stepwise.store.packaged import read_patterns
from safe_stepwise.store.replies import ReplyError, is_copied, plain_key, read_reply, without_fence

Form = Literal["strict", "salvaged", "unreadable"]
END = "end"
"""The name for what follows the last state."""
UNREADABLE = "unreadable"
"""The stop reason if a reply could not be read."""
MAX_CHARACTERS = 1_000
"""Maximum length of an answer or a sub-question; a longer one is invalid."""
MAX_REASON_CHARACTERS = 600
"""Length to which a reason is cut; the trajectory has the whole reply anyway."""
MAX_ITEMS = 50
"""Maximum number of facts or triples in a reply."""

FieldReader = Callable[[Any, bool], Any]
"""A function of a field's value and ``salvaging`` (see above)."""

PATTERNS = read_patterns(Path(__file__).with_name("patterns.yaml"))
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")
_YES = {"true": True, "yes": True, "false": False, "no": False}
_NUMBER = re.compile(r"(?:passage|sentence|path)?\s*#?([0-9]{1,6})", re.IGNORECASE)
_WRITTEN_KEY = re.compile(r'"([^"\\\r\n]{1,40}+)"\s*+:')
_LAST_FIELD = re.compile(r'"([A-Za-z_ ]{1,20})"\s{0,20}:\s{0,20}"([^"\\\n]{1,300})"\Z')
_LAST_LINE = re.compile(r"[\s*_#>-]{0,9}(?:the )?(?:final )?([a-z]{1,20})[*_ ]{0,4}(?:is)?:(.*)\Z")


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read in a reply; ``problem``: why it is not strict; ``feedback``: the verdict, if the reply is one."""

    form: Form
    value: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    text: str = ""
    """The reply."""
    feedback: Feedback | None = None
    revises: str = ""
    """The state whose unreadable reply this one replaces; "" for a first reply."""

    @property
    def is_strict(self) -> bool:
        """Whether the reply has exactly the required form."""
        return self.form == "strict"

    @property
    def is_unreadable(self) -> bool:
        return self.form == "unreadable"

    def with_reply(self, reply: Completion) -> "Reading":
        """Add the text of the reply; the problem of an incomplete reply is how it ended."""
        return replace(self, text=reply.transcript, problem=reply.flaw or self.problem)

    @property
    def plain(self) -> dict[str, Any]:
        """The reading as an attempt keeps it, a JSON value.

        >>> Reading("strict", {"answer": "Oru"}).plain
        {'form': 'strict', 'value': {'answer': 'Oru'}}
        """
        nonempty = {name: text for name, text in {"why": self.problem, "revises": self.revises}.items() if text}
        return {"form": self.form, "value": dict(self.value), **nonempty}


def attempt_of(number: int, state: str, after: str, reading: Reading, replies: Mapping[str, Completion]) -> Attempt:
    """Build a reply's attempt, accepted if read strictly; ``after`` is the next state, ``replies`` are by role."""
    usage = {role: reply.usage for role, reply in replies.items()}
    attempt = Attempt(
        number, reading.text, reading.feedback, reading.is_strict, usage, thoughts=collect_thoughts(replies)
    )
    return replace(attempt, state=state, read=reading.plain, next_state=after)


async def wait_for_end(run: Awaitable[str]) -> tuple[str, str]:
    """Return a run's stop reason and "", or ``failed`` and the error of a request that fails for good."""
    try:
        return await run, ""
    except EngineError as error:
        return FAILED, str(error)


def read(text: str, fields: Mapping[str, FieldReader], quoted: Sequence[str] = (), last: str = "") -> Reading:
    """Read fields of a reply with their readers; only an object with the first field is an answer.

    ``quoted`` are the texts that the request quotes, each of them whole. ``last`` names the field that a last line
    (``Answer: Marn``) may give if the reply has no object.

    >>> read('{"answer": "Oru", "explain": "Passage 2."}', {"answer": words, "explain": words}).form
    'strict'
    >>> read('Well: {"answer": 7,}', {"answer": words}).value
    {'answer': '7'}
    >>> read('Well: {"answer": 7,}', {"answer": words}, ['Say {"answer": 7}']).form
    'unreadable'
    """
    reply = read_reply(text)
    try:
        # Fields that were not asked for would make any quotation an answer.
        answers = [
            answer
            for answer in reply.answers(*fields)
            if not is_copied({name: answer[name] for name in fields if name in answer}, quoted)
        ]
        if not answers:
            raise ReplyError("no object holds the answer, or but one that is quoted")
        values = [_values(answer_, fields, True) for answer_ in answers]
        if any(_without_reasons(value, fields) != _without_reasons(values[0], fields) for value in values):
            raise ReplyError("two different answers in one reply")
    except ValueError as error:
        # No object there is, quoted or not, holds the field: then it may still stand alone.
        holds = lambda value: isinstance(value, dict) and any(plain_key(key) == last for key in value)  # noqa: E731
        is_lacking = last and not reply.is_too_long and not reply.outermost(holds)
        tail = _tail(text, last, fields, quoted) if is_lacking else {}
        return Reading("salvaged" if tail else "unreadable", tail, str(error), text)
    try:
        if len(answers) > 1 or not _is_alone(text, answers[0]):
            raise ReplyError("more than the object alone, or not in valid JSON")
        return Reading("strict", _values(answers[0], fields, False), "", text)
    except ValueError as error:
        return Reading("salvaged", values[0], str(error), text)


def _without_reasons(value: Mapping[str, Any], fields: Mapping[str, FieldReader]) -> dict[str, Any]:
    """Return the fields that two answers have to agree in: all but their reasons."""
    return {name: content for name, content in value.items() if fields[name] is not reason}


def _is_alone(text: str, answer: Mapping[str, Any]) -> bool:
    """Whether a reply, without a code fence around it, is exactly this object in valid JSON."""
    try:
        content = parse_json(without_fence(text))
    except ValueError:
        return False
    return isinstance(content, dict) and content == answer


def _values(answer: Mapping[str, Any], fields: Mapping[str, FieldReader], salvaging: bool) -> dict[str, Any]:
    """Read all fields of an answer; when salvaging, a field other than the first may be missing or unreadable."""
    values: dict[str, Any] = {}
    for number, (name, reads) in enumerate(fields.items()):
        try:
            if name in answer:
                values[name] = reads(answer[name], salvaging)
            elif not salvaging:
                raise ValueError("it is missing")
        except ValueError as error:
            if number == 0 or not salvaging:
                raise ReplyError(f"{name}: {error}") from None
    return values


def _tail(text: str, name: str, fields: Mapping[str, FieldReader], quoted: Sequence[str]) -> dict[str, Any]:
    """Read a field that only the end has: that of malformed JSON, or a last line ``Answer: Oru``; {} without."""
    end = text[-2_000:].rstrip(" \t\r\n`}]")
    line = (end.splitlines() or [""])[-1]
    match = _LAST_FIELD.search(end[-400:]) or _LAST_LINE.match(line.lower())
    if match is None or plain_key(match[1]) != name:
        return {}
    is_line = match.re is _LAST_LINE
    if sum(plain_key(key) == name for key in _WRITTEN_KEY.findall(text)) > (not is_line):
        return {}
    content = line[match.start(2) :].strip(" \t*_\"'").removesuffix(".") if is_line else match[2]
    if is_copied({name: content}, quoted):
        return {}
    try:
        return {name: fields[name](content, True)}
    except ValueError:
        return {}


def words(value: Any, salvaging: bool) -> str:
    """Read a text with at least one letter or digit, as one line of `MAX_CHARACTERS` at most.

    >>> words(" Oru\\ntown ", False), words(1932, True), words(True, True)
    ('Oru town', '1932', 'yes')
    """
    if salvaging and isinstance(value, bool):
        value = "yes" if value else "no"
    if salvaging and isinstance(value, int | float):
        value = str(value)
    if salvaging and isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str):
        raise ValueError("it is no text")
    text = " ".join(value.split())
    if not re.search(r"\w", text):
        raise ValueError("it says nothing")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"it is longer than {MAX_CHARACTERS:,} characters")
    if _HALF_A_PAIR.search(text):
        raise ValueError("it holds half of a surrogate pair")
    return text


def maybe_words(value: Any, salvaging: bool) -> str:
    """Read a text like `words`, or null or a blank text as ""."""
    is_nothing = value is None or (isinstance(value, str) and not value.strip())
    return "" if is_nothing else words(value, salvaging)


def reason(value: Any, salvaging: bool) -> str:
    """Read a text of any length, cut to `MAX_REASON_CHARACTERS`."""
    if not isinstance(value, str):
        if not salvaging:
            raise ValueError("it is no text")
        value = "" if value is None else canonical_json(value)
    short = " ".join(_HALF_A_PAIR.sub("\ufffd", value).split())
    return short if len(short) <= MAX_REASON_CHARACTERS else f"{short[: MAX_REASON_CHARACTERS - 1]}…"


def flag(value: Any, salvaging: bool) -> bool:
    """Read ``true`` or ``false``.

    >>> flag(False, False), flag(" False", True)
    (False, False)
    """
    if salvaging and isinstance(value, str):
        value = _YES.get(value.strip().lower(), value)
    if not isinstance(value, bool):
        raise ValueError("it is neither true nor false")
    return value


def number_in(lowest: int, highest: int, noun: str) -> FieldReader:
    """Return the reader of a whole number from ``lowest`` to ``highest``; ``noun`` names what it counts in errors.

    >>> number_in(1, 9, "passage")("Passage 1", True)
    1
    """

    def read_number(value: Any, salvaging: bool) -> int:
        if salvaging and isinstance(value, str):
            match = _NUMBER.fullmatch(value.strip())
            value = int(match[1]) if match else value
        if salvaging and isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"it is no {noun}'s number")
        if not lowest <= value <= highest:
            raise ValueError(f"there is no {noun} of that number, only {lowest} to {highest}")
        return value

    return read_number


def facts_in(passages: Sequence[Passage]) -> FieldReader:
    """Return the reader of supporting facts: pairs of a passage's number (from 1) and a sentence's (from 0).

    >>> facts_in([Passage("Oru", ("A town.",))])([[1, 0], ["1", 0], [7, 0]], True)
    [[1, 0]]
    """

    def pair(value: Any, salvaging: bool) -> list[int]:
        if salvaging and isinstance(value, dict):
            value = [value.get("passage"), value.get("sentence")]
        if not isinstance(value, list) or len(value) != 2:
            raise ValueError("it is no pair of a passage and a sentence")
        page = number_in(1, len(passages), "passage")(value[0], salvaging)
        last = len(passages[page - 1].sentences) - 1
        return [page, number_in(0, last, "sentence")(value[1], salvaging)]

    return list_reader(pair)


def triple(value: Any, salvaging: bool) -> list[str]:
    """Read a triple: subject, relation, object."""
    if salvaging and isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list) or len(value) != 3:
        raise ValueError("it is no list of subject, relation and object")
    return [words(item, salvaging) for item in value]


def list_reader(read_item: FieldReader, max_length: int = MAX_ITEMS) -> Callable[[Any, bool], list[Any]]:
    """Return the reader of a list without repeated items; when salvaging, it leaves out unreadable items."""

    def read_all(value: Any, salvaging: bool) -> list[Any]:
        if not isinstance(value, list) or len(value) > max_length:
            raise ValueError(f"it is no list of {max_length} at most")
        items: dict[str, Any] = {}
        for item in value:
            try:
                content = read_item(item, salvaging)
            except ValueError:
                if not salvaging:
                    raise
            else:
                items.setdefault(repr(content), content)
        return list(items.values())

    return read_all


sentences: FieldReader = list_reader(number_in(0, 9_999, "sentence"))
"""The reader of a list of sentence numbers, from 0."""
triples: FieldReader = list_reader(triple)
