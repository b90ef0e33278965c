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

Of a model's replies (`read_step`) some more are read, and some fewer. Marks around a step are ignored: Markdown, a
fence, quotation marks, special tokens, a line that only announces the step, other brackets and colons; and a reply
that opens with the answer's marker needs no number or kind. Marks around an answer are removed (`unwrap_answer`).
Refused is what one verdict could not judge, or what the model does not stand by: outside of quotations a step holds no
further step, no second kind, no blank, no answer besides its claim, and nothing that is taken back; an answer holds no
reason, no source and no doubt.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from safe_stepwise.records import Step, StepKind
from safe_stepwise.store.replies import without_fence
from safe_stepwise.taxonomy import STEP_KINDS

ANSWER_MARKER = "####ANSWER:"
_SEVERAL = "not atomic: more than one step"
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

# The marks in a reply. In these patterns runs are possessive or bounded, so that the search stays linear.
_KIND_IN_MARKS = r"[(\[（【] ?(attribution|logical|final[ _-]?answer)(?: (?:step|reasoning|inference))? ?[)\]）】]"
_MARKED_HEADER = re.compile(
    rf"\A[\s#>*_•-]*+step[ \t]*+#?([0-9]++)[*_]*+[ \t]*+(?:{_KIND_IN_MARKS})?[*_ \t]*+"
    r"(?:[:：]|[.)](?!\w)|[–—-](?=\s)|(?=\r?\n))[*_]*+",
    _FLAGS,
)
_MARKED_TAG = re.compile(rf"{_KIND_IN_MARKS}[\s.*_`]*+\Z", _FLAGS)
EMPHASIS = re.compile(r"\*\*|(?<!_)__(?!_)")
"""Markdown's marks, which are removed from a step of a reply."""
_BOX = r"[\s$*]{0,4}(?:\\[(\[])?\s?\\boxed\{"
_MARKED_ANSWER = re.compile(
    r"\A[*_]*+(?:((?:\\?#){4} ?)?#*+ ?(?:final )?answer ?[:：]|"
    rf"(?:(?:the )?(?:final )?answer(?: is)?:?)?(?={_BOX}))[*_\s]*+",
    _FLAGS,
)
_TOKEN = (
    r"(?:<[|｜][\w▁ ]{2,24}[|｜]>|</?(?:s|answer)>|<(?:eos|bos|pad|unk|(?:start|end)_of_turn)>|\[/INST\])"
    r"(?:\s{0,3}(?:assistant|model)(?=\s*(?:[\r\n<]|\Z)))?"
)
_TOKENS = re.compile(rf"(?:{_TOKEN}\s*+)++")
_LITTER = re.compile(
    rf"(?:(?:{_TOKEN}|\*\*++|#{{3,}}+|\((?i:final(?: ans\w{{0,4}})?)\)?(?=\W{{0,3}}\Z)|"
    r"[–—-] ?(?i:final answer)(?=\W{0,3}\Z))\s*+)++"
)
_WRAPPED = re.compile(
    r"(?P<mark>\$\$?|[`_])(?P<marked>[^$`\r\n]+)(?P=mark)\.?|\\[(\[](?P<math>.+)\\[)\]]\.?|"
    r"\\(?:boxed|text(?:bf|it|rm)?|math(?:bf|it|rm))\{(?P<latex>(?:[^{}]|\{[^{}]*\})*)\}\.?|"
    r"<(?P<tag>b|i|em|strong)>(?P<html>.*)</(?P=tag)>"
)
_ANNOUNCEMENT = re.compile(
    r"\A[*_#]*+(?!step|\d)(?:(?:sure|certainly|of|course|okay|ok|here|is|s|this|below|based|on|the|my|your|next|final|"
    r"new|corrected|single|one|atomic|reasoning|feedback|guidance|answer|step|assistant|model|\d{1,4})\b"
    r"[ ,.!:’'*_]{0,6}){1,16}[\r\n]\s*+",
    _FLAGS,
)
_PAIRS = {"`": "`", '"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“"}

_QUOTATION = re.compile(r"\"[^\"]*\"|“[^“”]*”|‘[^‘’]*’|«[^«»]*»|(?<!\w)'\w[^'\r\n]{0,200}'(?!\w)")
_BREAK = r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]"
_LINE = rf"(?:\A|{_BREAK})[\W_]{{0,20}}"
_CLAUSE = r"(?:[.!?;|/→⇒。！？；]|,(?=\s(?:and )?then\b))[\W_]{0,20}"
_LEAD = r"(?:\\\w{1,12}\{)?(?:(?:and|then|so|now|next|finally)\b[,:]?\s){0,2}"
_HEAD = (
    r"(?:step\s{0,3}#?\s?(?:\d{1,4}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|[ivx]{1,5})|"
    r"(?:the )?(?:next|second|third|fourth|fifth|following|last|final) step)[*_)}\]]{0,4}\s{0,3}"
)
_NEXT = (
    rf"(?i)(?:{_BREAK}[\W_]{{0,20}}|(?<!\bno)(?<!\bvol)[.!?]\W{{1,3}})%(next)d[*_]{{0,2}}[.):][*_\s]{{0,3}}[^\W\d]|"
    r"\bstep[ \t]{0,3}#?%(next)d[*_]{0,2} ?[:：]"
)
_RETRACTION = (
    r"(?:(?:oh|hmm*|but|ah|however|actually),? )?(?:wait(?= ?[,.:;!…–—-]| no\b)|"
    r"no(?= ?[,:;!…–—](?! no\b)|,? wait\b|\.\s[^\W\d])|(?:sorry|apologies|never mind)(?=[,.:;!…–—])|"
    r"(?:correction|edit) ?:|(?:hmm+|oops|nope|hold on|my mistake|i mean|or rather)\b|on second thought|"
    r"actually,? (?:no|it|that)\b|(?:scratch|strike|ignore|disregard) (?:that|th(?:is|e above))\b|"
    r"i take (?:it|that) back|let me (?:re|correct|fix|try again|double)|i(?:[’']m| am) not sure|"
    r"i (?:made a mistake|was wrong|misread)|th(?:at|is)(?:[’']s| is| was) (?:wrong|false|incorrect|a mistake|"
    r"not (?:right|correct|true|supported|in the passage))(?:\W{0,3}\Z| ?[.,;:!?–—]| by\b))"
)
_BLANK, _TAKEN_BACK = "the form is not filled in", "a part of it is taken back"
_FAULTS = {
    rf"(?i){_LINE}{_LEAD}{_HEAD}(?:[:：.)–—-]|{_BREAK})": _SEVERAL,
    rf"(?i){_CLAUSE}{_LEAD}{_HEAD}(?:[:：–—]|-\s|\.\s[^\W\d])": _SEVERAL,
    rf"(?ai)(?<!step \d ){_KIND_IN_MARKS}": _SEVERAL,
    rf"(?i)~~|[❌✗]|(?:[.!;…(–—\r\n]| -)[^\w\r\n]{{0,4}}{_RETRACTION}": _TAKEN_BACK,
    # Not an element of HTML, nor what is closed.
    r"<(?!nowiki|br|ce|ref|ruby|r[bpt]>|su[bp]|think|(?:[abipu]|h[r1-6]|t[dhrt]|d[dlt]|[ou]l|li|em|img|pre|div|span|"
    r"code|font|html|head|body|table|script|style|strong|small|center|blockquote)>)(?P<tag>[a-z][a-z _-]{0,40})>"
    r"(?![^<>]{0,200}</(?P=tag)>)|(?<!\w)<[A-Z]>|"
    r"\b[Pp]assage (?:[NKX]\b|_|\.\.\.|…)|(?<![\w_])(?<!U\.S\. )_{3,}|(?i:[<\[{](?:(?:your|the|an?|final|insert|one) )"
    r"{0,3}(?:answer|text|step|fact|claim|name|entity|blank)(?: here)?[>\]}])": _BLANK,
    r"\A(?:I[’']m|I am) (?:sorry|unable|not able)|\A(?:Sorry, |Unfortunately, )?(?:I|we) (?:can ?not|can[’']t|do not|"
    r"don[’']t|won[’']t) (?:help|assist|answer|comply|provide|continue|know|determine)\b": "it declines to answer",
}
_FAULTS_OF_ANSWERS = {
    r", (?:no[,:]|wait[,: ]|sorry[,:]|(?:or rather|[Ii] (?:mean|think|believe|guess)|actually)\b)|\? (?:[Nn]o[,.:]|"
    r"[Oo]r\b)|[.;] Actually,|\((?:not sure|maybe|perhaps|probably|or [^()]{0,80}\?\))": _TAKEN_BACK,
    r"(?i)(?<!\Athe )\banswer ?[:：]": "not atomic: it holds two answers",
    r"\\boxed": "the answer is written as a formula",
    r"(?<=[\s(\[])(?:Step|Passage) \d|, because\b|\b(?:in|on|from) the passages\b|\AThe answer is\b|"
    r"<[|｜]\w|(?<=[\s>\])])(?:Human|User|Assistant): |(?i:[.;] (?:note|reason|explanation):)": "more than an answer",
    r"(?i)\A(?:the |your )?answer\W*\Z": _BLANK,
}
_FAULTS_OF_CLAIMS = {
    rf"(?i)(?:{_LINE}|{_CLAUSE}|, |\b(?:so|thus|hence|therefore|then|and|is),? ){_LEAD}(?:\\?#){{4}} ?answer ?[:：]|"
    rf"(?:{_LINE}|{_CLAUSE}){_LEAD}(?:final )?answer ?[:：]|\\boxed": "not atomic: it submits an answer, too",
    rf"(?i){_BREAK}[\W_]{{0,20}}(?:according to passage|from (?:step|passage) \d)": _SEVERAL,
    r"\b(?:was|is|are|were|by|in|the|of|Passage \d{1,3},)(?: (?:\.\.\.|…)\.?)?\Z": _BLANK,
}
"""Patterns of what makes a reply no single step that the model stands by, each with the reason."""


class StepError(ValueError):
    """A step that breaks the grammar; the message is the reason, in one line."""


def format_step(step: Step) -> str:
    """Write a valid step as text, which ``parse_step`` reads back; raises StepError for another (see the module).

    >>> format_step(Step(1, "According to Passage 2, Oru lies on the Vel.", "Attribution"))
    'Step 1: According to Passage 2, Oru lies on the Vel. (Attribution)'
    """
    _check(step)
    return f"Step {step.number}: {step.text} ({step.kind})"


def parse_step(text: str) -> Step:
    """Parse a reply's single step, with the marker's exact spelling; raises StepError, and nothing else, for another.

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


def read_step(text: str, number: int = 0) -> Step:
    """Parse a model's step without the marks around it; ``number`` is that of an answer that has none.

    Raises StepError as `parse_step` does, and for a reply that is no single step that the model stands by.

    >>> read_step("**Step 1:** Oru lies on the Vel. *(Logical)*").text
    'Oru lies on the Vel.'
    >>> read_step("Step 1: ####ANSWER: Oru. Wait, no: Tesk (Final Answer)")
    Traceback (most recent call last):
    safe_stepwise.steps.StepError: a part of it is taken back: '. Wait'
    """
    try:
        return check_claim(parse_step(text))
    except StepError as error:
        with suppress(StepError):
            return check_claim(parse_step(_without_marks(text, number)))
        raise error


def is_salvaged(text: str, number: int = 0) -> bool:
    """Return whether a reply is a step only without its marks; ``number`` is that of an answer that has none.

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
    """Remove fences, quotation marks, special tokens and an announcement that stand around a reply.

    >>> without_wrapping("Here is the next step:\\n`Step 1: Oru lies on the Vel. (Logical)`</s>")
    'Step 1: Oru lies on the Vel. (Logical)'
    """
    for _ in range(3):
        text = text.strip("\ufeff\u200b \t\r\n")
        text = without_fence(re.sub(r"\A~~~|~~~\Z", "```", _trim(_TOKENS, text))).strip()
        if text[1:].endswith(_PAIRS.get(text[:1], "\n")):
            text = text[1:-1]
        text = _ANNOUNCEMENT.sub("", text, count=1)
    return text.strip()


def unwrap_answer(answer: str) -> str:
    """Remove tokens, a tag that was cut, Markdown, HTML and LaTeX that stand around an answer.

    >>> unwrap_answer(r"$\\boxed{\\text{Oru}}$.</s> (Final Answer")
    'Oru'
    """
    for _ in range(5):
        answer = _trim(_LITTER, re.sub(r"\A(\*\*?)([^*]+)\1", r"\2", answer))
        if (wrapped := _WRAPPED.fullmatch(answer)) and wrapped.lastgroup:
            answer = wrapped[wrapped.lastgroup].strip()
    return answer


def _trim(litter: re.Pattern[str], text: str) -> str:
    """Remove what matches at either end; a pattern of possessive runs takes linear time."""
    text = text.strip()
    return litter.sub(lambda run: "" if run.start() == 0 or run.end() == len(text) else run[0], text).strip()


def _without_marks(text: str, number: int) -> str:
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
    """Return a step of a reply, its answer unwrapped; raise StepError if the model stands by no such single step."""
    is_answer = step.kind == "Final Answer"
    content = unwrap_answer(final_answer(step)) if is_answer else step.text
    if not any(map(str.isalnum, re.sub(r"\\[a-z]++", "", content))):
        raise StepError(f"{_BLANK}: it has no words")
    # Of a quotation the end is kept, at which a sentence may end.
    claim = content if is_answer else _QUOTATION.sub(lambda quotation: quotation[0][-2:], content)
    faults = _FAULTS | (_FAULTS_OF_ANSWERS if is_answer else _FAULTS_OF_CLAIMS)
    faults |= {_NEXT % {"next": step.number + 1}: _SEVERAL}  # no step cites the one after it
    for pattern, reason in faults.items():
        if match := re.search(pattern, claim):
            raise StepError(f"{reason}: {match[0].strip()!r}")
    return replace(step, text=f"{ANSWER_MARKER} {content}") if is_answer else step


def final_answer(step: Step) -> str:
    """Return a Final Answer step's answer, without the marker; raises StepError for any other step.

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
        raise StepError(f"{_SEVERAL}, the second one from character {next_step.start()} on")


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
