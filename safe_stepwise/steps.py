"""Writes and reads steps by one grammar: ``Step K: <text> (Kind)``.

A valid step (``parse_step`` gives back unchanged what ``format_step`` writes) has

- a number from 1 to 9999 and one of the three kinds;
- a text that is not empty and has no white space around it (newlines inside it are kept);
- no second step in it: no line opens with ``Step N:`` (with or without Markdown), no kind tag is followed by
  ``Step ...:``, by a new line or by the end (the step's own tag comes after the text);
- a text that UTF-8 can encode;
- as Final Answer the text ``####ANSWER: <answer>``: one line, one marker, an answer that is not
  empty; as any other kind a text that does not open with the marker (inside, it may be quoted).

`parse_step` also accepts white space around the parts, any case of ``step``, the marker and the kind, and a full stop
after the kind.

`read_step`, for a model's replies, accepts more and refuses more. It ignores marks around a step: Markdown, a fence,
quotation marks, special tokens, a line that only announces the step, other brackets and colons; and a reply that opens
with the answer's marker needs no number or kind. Marks around an answer are removed (`unwrap_answer`). It refuses a
reply that one verdict could not judge, or that the model does not stand by: outside of quotations, a step must not
have a further step, a second kind, a blank, an answer besides its claim, or a part that is taken back; an answer must
not have a reason, a source or a doubt.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from safe_stepwise.records import Step, StepKind
from safe_stepwise.store.packaged import read_patterns
from safe_stepwise.store.replies import without_fence
from safe_stepwise.taxonomy import STEP_KINDS

ANSWER_MARKER = "####ANSWER:"
_SEVERAL = "not atomic: more than one step"
MAX_NUMBER = 9999

_PATTERNS = read_patterns(Path(__file__).with_suffix(".yaml"))
# ASCII: without it the dotless "ı" would match "i" and yield a kind that nobody knows.
_FLAGS = re.ASCII | re.IGNORECASE
_HEADER = re.compile(r"\Astep(?![a-z])[ \t]*([^:\r\n]{0,40}):", _FLAGS)
_MARKER = re.compile(r"#### ?answer ?:", _FLAGS)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_TAG_AT_END = re.compile(_PATTERNS["kind"] + r"\Z", _FLAGS)
_SECOND_STEP = re.compile(_PATTERNS["second_step"], _FLAGS)
_KIND_OF: dict[str, StepKind] = {kind.replace(" ", "").lower(): kind for kind in STEP_KINDS}

_MARKED_HEADER = re.compile(_PATTERNS["marked_header"], _FLAGS)
_MARKED_TAG = re.compile(_PATTERNS["kind_in_marks"] + r"[\s.*_`]*+\Z", _FLAGS)
EMPHASIS = re.compile(r"\*\*|(?<!_)__(?!_)")
"""Markdown's marks, which are removed from a step of a reply."""
_MARKED_ANSWER = re.compile(_PATTERNS["marked_answer"], _FLAGS)
_SPECIAL_TOKENS = re.compile(rf"(?:{_PATTERNS['special_token']}\s*+)++")
_ANSWER_LITTER = re.compile(_PATTERNS["answer_litter"])
_WRAPPED = re.compile(_PATTERNS["wrapped"])
_ANNOUNCEMENT = re.compile(_PATTERNS["announcement"], _FLAGS)
_PAIRS = {"`": "`", '"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“"}
_QUOTATION = re.compile(r"\"[^\"]*\"|“[^“”]*”|‘[^‘’]*’|«[^«»]*»|(?<!\w)'\w[^'\r\n]{0,200}'(?!\w)")

_BLANK, _TAKEN_BACK = "the form is not filled in", "a part of it is taken back"
_FAULTS = {
    **dict.fromkeys(("step_on_line", "step_in_clause", "second_kind"), _SEVERAL),
    "taken_back": _TAKEN_BACK,
    "blank": _BLANK,
    "declining": "it declines to answer",
}
_FAULTS_OF_ANSWERS = {
    "answer_taken_back": _TAKEN_BACK,
    "second_answer": "not atomic: it holds two answers",
    "formula": "the answer is written as a formula",
    "more_than_answer": "more than an answer",
    "no_answer": _BLANK,
}
_FAULTS_OF_CLAIMS = {
    "answer_too": "not atomic: it submits an answer, too",
    "second_claim": _SEVERAL,
    "unfinished": _BLANK,
}
"""Patterns of replies that are not a single step that the model stands by, by name, each with the reason."""


class StepError(ValueError):
    """A step that breaks the grammar; the message is the reason, in one line."""


def format_step(step: Step) -> str:
    """Write a valid step as text, which ``parse_step`` reads back; raises StepError if it is invalid (see the module).

    >>> format_step(Step(1, "According to Passage 2, Oru lies on the Vel.", "Attribution"))
    'Step 1: According to Passage 2, Oru lies on the Vel. (Attribution)'
    """
    _check_step(step)
    return f"Step {step.number}: {step.text} ({step.kind})"


def parse_step(text: str) -> Step:
    """Parse a reply's single step, with the marker's exact spelling; raises only StepError, for any other reply.

    >>> parse_step("step 3:  #### Answer: Oru (final answer).")
    Step(number=3, text='####ANSWER: Oru', kind='Final Answer')
    """
    text = text.strip()
    if not text:
        raise StepError("the reply is empty")
    header = _HEADER.match(text)
    if header is None:
        raise StepError(f"the reply does not open with 'Step K:' but with {text[:40]!r}")
    number = _parse_number(header[1].strip())
    body, kind = _split_kind(text[header.end() :].strip())
    marker = _MARKER.match(body)
    if kind == "Final Answer" and marker is not None:
        body = f"{ANSWER_MARKER} {body[marker.end() :].strip()}".rstrip()
    step = Step(number, body, kind)
    _check_step(step)
    return step


def read_step(text: str, number: int = 0) -> Step:
    """Parse a model's step without the marks around it; an answer without a number gets ``number``.

    Raises StepError as `parse_step` does, and for a reply that is not a single step that the model stands by.

    >>> read_step("**Step 1:** Oru lies on the Vel. *(Logical)*").text
    'Oru lies on the Vel.'
    """
    try:
        return check_claim(parse_step(text))
    except StepError as error:
        with suppress(StepError):
            return check_claim(parse_step(_remove_marks(text, number)))
        raise error


def is_salvaged(text: str, number: int = 0) -> bool:
    """Whether a reply is a step only without its marks; an answer without a number gets ``number``.

    >>> [is_salvaged(f"{head} Oru lies on the Vel. (Logical)") for head in ("Step 1:", "**Step 1:**", "Well,")]
    [False, True, False]
    """
    with suppress(StepError):
        step = read_step(text, number)
        with suppress(StepError):
            return parse_step(text) != step
        return True
    return False


def without_wrapping(text: str) -> str:
    """Remove fences, quotation marks, special tokens and an announcement around a reply.

    >>> without_wrapping("Here is the next step:\\n`Step 1: Oru lies on the Vel. (Logical)`</s>")
    'Step 1: Oru lies on the Vel. (Logical)'
    """
    for _ in range(3):
        text = text.strip("\ufeff\u200b \t\r\n")
        text = without_fence(re.sub(r"\A~~~|~~~\Z", "```", _trim_ends(_SPECIAL_TOKENS, text))).strip()
        if text[1:].endswith(_PAIRS.get(text[:1], "\n")):
            text = text[1:-1]
        text = _ANNOUNCEMENT.sub("", text, count=1)
    return text.strip()


def unwrap_answer(answer: str) -> str:
    """Remove special tokens, a cut-off kind tag, Markdown, HTML and LaTeX around an answer.

    >>> unwrap_answer(r"$\\boxed{\\text{Oru}}$.</s> (Final Answer")
    'Oru'
    """
    for _ in range(5):
        answer = _trim_ends(_ANSWER_LITTER, re.sub(r"\A(\*\*?)([^*]+)\1", r"\2", answer))
        if (wrapped := _WRAPPED.fullmatch(answer)) and wrapped.lastgroup:
            answer = wrapped[wrapped.lastgroup].strip()
    return answer


def _trim_ends(litter: re.Pattern[str], text: str) -> str:
    """Remove matches at either end; the time is linear, as patterns have possessive runs."""
    text = text.strip()
    return litter.sub(lambda run: "" if run.start() == 0 or run.end() == len(text) else run[0], text).strip()


def _remove_marks(text: str, number: int) -> str:
    body = text = without_wrapping(text)
    if header := _MARKED_HEADER.match(text):
        number = int(header[1][:9])
        body = EMPHASIS.sub("", text[header.end() :]).strip().rstrip("*_` \n")
    kinds = [header[2]] if header and header[2] else []
    if tag := _MARKED_TAG.search(body):
        body, kinds = body[: tag.start()].rstrip(" *_"), [*kinds, tag[1]]
    marker = _MARKED_ANSWER.match(body)
    if marker and marker[1] and not kinds:
        kinds = ["Final Answer"]
    if marker and kinds[-1:] and kinds[-1].lower().startswith("final"):
        body = f"{ANSWER_MARKER} {unwrap_answer(body[marker.end() :])}"
    elif not header:
        return text
    return f"Step {number}: {body} ({') ('.join(dict.fromkeys(kinds))})"


def check_claim(step: Step) -> Step:
    """Return a step of a reply, its answer unwrapped; raise StepError if the model does not stand by one step."""
    is_answer = step.kind == "Final Answer"
    content = unwrap_answer(final_answer(step)) if is_answer else step.text
    if not any(map(str.isalnum, re.sub(r"\\[a-z]++", "", content))):
        raise StepError(f"{_BLANK}: it has no words")
    # The end of a quotation is kept, as a sentence may end there.
    claim = content if is_answer else _QUOTATION.sub(lambda quotation: quotation[0][-2:], content)
    faults = _FAULTS | (_FAULTS_OF_ANSWERS if is_answer else _FAULTS_OF_CLAIMS)
    faults |= {"next_step": _SEVERAL}  # a step does not cite the next one
    for name, reason in faults.items():
        if match := re.search(_PATTERNS[name].replace("%(next)d", str(step.number + 1)), claim):
            raise StepError(f"{reason}: {match[0].strip()!r}")
    return replace(step, text=f"{ANSWER_MARKER} {content}") if is_answer else step


def final_answer(step: Step) -> str:
    """Return a Final Answer step's answer, without the marker; raises StepError for any other step.

    >>> final_answer(Step(4, "####ANSWER: Oru", "Final Answer"))
    'Oru'
    """
    if step.kind != "Final Answer":
        raise StepError(f"step {step.number} is of kind {step.kind}: it holds no final answer")
    _check_step(step)
    return step.text[len(ANSWER_MARKER) :].strip()


def successions(previous: Sequence[str], current: str | None = None) -> Iterator[tuple[tuple[str, ...], str]]:
    """Pair each step with the steps before it; ``current`` is the last step, if it is given.

    >>> [*successions(["a", "b"], "c")]
    [((), 'a'), (('a',), 'b'), (('a', 'b'), 'c')]
    """
    steps = (*previous, *([] if current is None else [current]))
    return ((steps[:number], step) for number, step in enumerate(steps))


def _parse_number(digits: str) -> int:
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
        raise StepError(f"{_SEVERAL}, the second one from character {next_step.start()} on")


def _check_step(step: Step) -> None:
    if isinstance(step.number, bool) or not 1 <= step.number <= MAX_NUMBER:
        raise StepError(f"the step's number {step.number} is not from 1 to {MAX_NUMBER}")
    if step.kind not in STEP_KINDS:
        raise StepError(f"unknown kind {step.kind!r}; known: {', '.join(STEP_KINDS)}")
    if not step.text.strip():
        raise StepError("the step's text is empty")
    if step.text != step.text.strip():
        raise StepError("the step's text has white space around it")
    if _LONE_SURROGATE.search(step.text):
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
