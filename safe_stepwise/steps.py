"""Writes and reads steps by one grammar: ``Step K: <text> (Kind)``.

A valid step (``parse_step`` gives back unchanged what ``format_step`` writes) has

- a number from 1 to 9999 and one of the three kinds;
- a text that is not empty and has no white space around it (newlines inside it are kept);
- no second step in it: no line opens with ``Step N:`` (markdown aside), no kind tag is followed by
  ``Step ...:``, by a new line or by the end (the tag of the step itself comes after the text);
- a text that UTF-8 can hold;
- as Final Answer the text ``####ANSWER: <answer>``: one line, one marker, an answer that is not
  empty; as any other kind a text that does not open with the marker (inside, it may be quoted).

Reading is a little wider than writing: white space around the parts, the case of ``step``, of the
marker and of the kind, a full stop after the kind.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from safe_stepwise.records import Step, StepKind
from safe_stepwise.store.replies import without_fence
from safe_stepwise.taxonomy import STEP_KINDS

ANSWER_MARKER = "####ANSWER:"
MAX_NUMBER = 9999

# ASCII: without it the dotless "ı" would match "i" and yield a kind that nobody knows.
_FLAGS = re.ASCII | re.IGNORECASE
_KIND = r"\( ?(?:attribution|logical|final[ _-]?answer) ?\)\.?"
_HEADER = re.compile(r"\Astep(?![a-z])[ \t]*([^:\r\n]{0,40}):", _FLAGS)
_MARKER = re.compile(r"#### ?answer ?:", _FLAGS)
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")
_TAG_AT_END = re.compile(_KIND + r"\Z", _FLAGS)
# White space is spelled out so that no alternative can run over lines that another one starts at:
# the search stays linear on a reply of nothing but newlines.
_SECOND_STEP = re.compile(
    r"(?:\A|[\r\n])[ \t*#>_-]*+step[ \t]*+[0-9]++[ \t]*+:"
    rf"|{_KIND}[ \t]*+(?:[\r\n]|[*#>_-]*+step(?![a-z])[^:\r\n]{{0,40}}:)",
    _FLAGS,
)
_KIND_OF: dict[str, StepKind] = {kind.replace(" ", "").lower(): kind for kind in STEP_KINDS}


_MARKED_HEADER = re.compile(r"\A[ \t#>*_-]*+step[ \t]*+([0-9]++)[*_]*+[ \t]*+:[*_]*+", _FLAGS)


class StepError(ValueError):
    """A step that breaks the grammar; the message is the reason, in one line."""


def format_step(step: Step) -> str:
    """Write a valid step as text; ``parse_step`` turns it back into an equal ``Step``.

    Raises StepError for a step that is not valid (see the module's docstring).

    >>> format_step(Step(1, "According to Passage 2, Oru lies on the Vel.", "Attribution"))
    'Step 1: According to Passage 2, Oru lies on the Vel. (Attribution)'
    """
    _check(step)
    return f"Step {step.number}: {step.text} ({step.kind})"


def parse_step(text: str) -> Step:
    """Parse the single step of a reply; a final step's text gets the marker's exact spelling.

    Raises StepError, and nothing else, for any other text.

    >>> parse_step("step 3:  #### Answer: Oru (final answer).")
    Step(number=3, text='####ANSWER: Oru', kind='Final Answer')
    >>> parse_step("Step two: Oru lies on the Vel. (Attribution)")
    Traceback (most recent call last):
    safe_stepwise.steps.StepError: the step's number 'two' is not written in digits
    """
    text = text.strip()
    if not text:
        raise StepError("the reply is empty")
    header = _HEADER.match(text)
    if header is None:
        raise StepError(f"the reply does not open with 'Step K:' but with {text[:40]!r}")
    number = _number(header[1].strip())
    body, kind = _split_kind(text[header.end() :].strip())
    marker = _MARKER.match(body)
    if kind == "Final Answer" and marker is not None:
        body = f"{ANSWER_MARKER} {body[marker.end() :].strip()}".rstrip()
    step = Step(number, body, kind)
    _check(step)
    return step


def read_step(text: str) -> Step:
    """Parse a model's step as `parse_step` does, but ignore Markdown; raises as `parse_step` does.

    >>> read_step("**Step 1:** Oru lies on the Vel. *(Logical)*").text
    'Oru lies on the Vel.'
    """
    try:
        return parse_step(text)
    except StepError as error:
        with suppress(StepError):
            return parse_step(_without_markdown(text))
        raise error


def is_salvaged(text: str) -> bool:
    """Return whether a reply is a step only without its Markdown.

    >>> [is_salvaged(f"{head} Oru lies on the Vel. (Logical)") for head in ("Step 1:", "**Step 1:**", "Well,")]
    [False, True, False]
    """
    try:
        parse_step(text)
    except StepError:
        with suppress(StepError):
            return bool(parse_step(_without_markdown(text)))
    return False


def _without_markdown(text: str) -> str:
    text = without_fence(text).strip()
    header = _MARKED_HEADER.match(text)
    if header is None:
        return text
    body = text[header.end() :].replace("**", "").replace("__", "").strip().rstrip("*_` \n")
    if tag := _TAG_AT_END.search(body):
        body = f"{body[: tag.start()].rstrip(' *_')} {tag[0]}"
    return f"Step {header[1]}: {body}"


def final_answer(step: Step) -> str:
    """Return the answer of a Final Answer step, without the marker.

    Raises StepError for a step of another kind or one that is not valid.

    >>> final_answer(Step(4, "####ANSWER: Oru", "Final Answer"))
    'Oru'
    """
    if step.kind != "Final Answer":
        raise StepError(f"step {step.number} is of kind {step.kind}: it holds no final answer")
    _check(step)
    return step.text[len(ANSWER_MARKER) :].strip()


def successions(previous: Sequence[str], current: str | None = None) -> Iterator[tuple[tuple[str, ...], str]]:
    """Pair each step with the steps before it; ``current`` is the last step, if there is one.

    >>> [*successions(["a", "b"], "c")]
    [((), 'a'), (('a',), 'b'), (('a', 'b'), 'c')]
    """
    steps = (*previous, *([] if current is None else [current]))
    return ((steps[:number], step) for number, step in enumerate(steps))


def _number(digits: str) -> int:
    if not digits:
        raise StepError("the step's number is missing: write 'Step K:'")
    if not (digits.isascii() and digits.isdigit()):
        raise StepError(f"the step's number {digits!r} is not written in digits")
    return int(digits)


def _split_kind(body: str) -> tuple[str, StepKind]:
    _check_atomic(body)
    tag = _TAG_AT_END.search(body)
    if tag is None:
        expected = ", ".join(f"({kind})" for kind in STEP_KINDS)
        raise StepError(f"the step does not end with one of {expected} but with {body[-40:]!r}")
    kind = _KIND_OF[re.sub(r"[^a-z]", "", tag[0].lower())]
    return body[: tag.start()].rstrip(), kind


def _check_atomic(text: str) -> None:
    next_step = _SECOND_STEP.search(text)
    if next_step is not None:
        raise StepError(f"not atomic: more than one step, the second one from character {next_step.start()} on")


def _check(step: Step) -> None:
    if isinstance(step.number, bool) or not 1 <= step.number <= MAX_NUMBER:
        raise StepError(f"the step's number {step.number} is not from 1 to {MAX_NUMBER}")
    if step.kind not in STEP_KINDS:
        raise StepError(f"unknown kind {step.kind!r}; known: {', '.join(STEP_KINDS)}")
    if not step.text.strip():
        raise StepError("the step's text is empty")
    if step.text != step.text.strip():
        raise StepError("the step's text has white space around it")
    if _HALF_A_PAIR.search(step.text):
        raise StepError("the step's text holds half of a surrogate pair")
    _check_atomic(step.text)
    if _TAG_AT_END.search(step.text):
        raise StepError("the step ends with two kinds: one step is of one kind")
    if step.kind == "Final Answer":
        _check_final(step.text)
    elif _MARKER.match(step.text):
        raise StepError(f"{ANSWER_MARKER} opens a step of kind {step.kind}, not Final Answer")


def _check_final(text: str) -> None:
    if not text.startswith(ANSWER_MARKER):
        raise StepError(f"a Final Answer step is '{ANSWER_MARKER} <answer>' and nothing else")
    answer = text[len(ANSWER_MARKER) :].strip()
    if not answer:
        raise StepError(f"no answer behind {ANSWER_MARKER}")
    if text != f"{ANSWER_MARKER} {answer}":
        raise StepError(f"between {ANSWER_MARKER} and the answer stands one space")
    if _MARKER.search(answer):
        raise StepError(f"not atomic: {ANSWER_MARKER} stands in it twice")
    if len(answer.splitlines()) > 1:
        raise StepError("the answer runs over more than one line")
