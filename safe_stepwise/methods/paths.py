"""Renders the request whether a relation path is valid, in four styles, and parses the verdict.

The discriminative evaluation of arXiv 2402.11199 (section 3.1): a question, its answer and a path go in, YES or NO
comes out; at once or after reasoning, without and with worked examples.

The prompts ask for JSON with one ``verdict``. A reply in plain words counts if it clearly gives one verdict: as its
first word, followed by a mark, as its last word, or after "the answer is". Any other reply is unreadable: "I know" has
no NO, and "YES or NO" no verdict.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from safe_stepwise import prompts
from safe_stepwise.engines.base import Allowance, Request
from safe_stepwise.methods.scene import PathScene
from safe_stepwise.records import Triple
from safe_stepwise.store.replies import ReplyError, read_reply

Style = Literal["zero_shot", "zero_shot_reasoning", "few_shot", "few_shot_reasoning"]
STYLES: tuple[Style, ...] = get_args(Style)
"""The styles of the paper's four prompts; its "CoT" is called reasoning."""
Verdict = Literal["YES", "NO"]
_VERDICTS: Mapping[str, Verdict] = {"yes": "YES", "no": "NO"}
_PROMPTS = {is_long: f"paths/zero_shot{'_reasoning' * is_long}" for is_long in (False, True)}
_MARKS = re.compile(r"[*_`\"'“”‘’]+")
_WORD = r"(yes|no)\b"
_END = r"(?=\s*(?:[.,;:!?)\]\n]|$))"
_CHOICE = re.compile(rf"\b{_WORD}\s*(?:or|and|/|\|)\s*{_WORD}", re.IGNORECASE)
_PLAIN = (
    re.compile(rf"^\W*{_WORD}(?=\s*(?:[.,;:!\n–—]|$))", re.IGNORECASE),
    re.compile(rf"(?:^|[.!?:;,…\n])\s*{_WORD}\W*$", re.IGNORECASE),
    re.compile(r"\b(YES|NO)\W*$"),
    re.compile(rf"\b(?:answer|verdict|conclusion)\s*(?:is|:|=|->)\s*:?\s*{_WORD}{_END}", re.I),
)
"""Patterns of a plain verdict: the first word; the last sentence; the last word, in capitals; "the answer is"."""


def path_request(
    question: str, answer: str, path: Sequence[Triple], style: Style = "zero_shot", gold: Sequence[Triple] = ()
) -> Request:
    """Render the greedy request for a verdict on a path; only a simulating player sees ``gold``.

    >>> oru = Triple("Ana Vorr", "place of birth", "Oru")
    >>> print(path_request("Where was Ana Vorr born?", "Oru", [oru]).messages[1].content)
    Question: "Where was Ana Vorr born?"
    Answer: "Oru"
    Path:
    1. "Ana Vorr" -> "place of birth" -> "Oru"
    <BLANKLINE>
    Is the path valid?
    """
    prompt = prompts.load(prompt_of(style))
    messages = prompt.messages(question=question, answer=answer, path=path)
    scene = PathScene(question, tuple(path), tuple(gold)) if gold else None
    request = prompt.request(messages, scene)
    examples = prompts.examples([prompt.role]) if style.startswith("few_shot") else None
    return request if examples is None else Allowance().with_examples(examples).apply(request)


def prompt_of(style: Style) -> str:
    return _PROMPTS[style.endswith("reasoning")]


def roles() -> tuple[str, ...]:
    """Return the roles of the path prompts."""
    return prompts.roles_of(_PROMPTS.values())


def read_verdict(text: str, data: str = "") -> Verdict:
    """Parse the verdict in a reply; raises ``ReplyError`` with the reason unless there is exactly one.

    ``data`` is the text that the request quoted; a verdict copied from it does not count.

    >>> read_verdict('{"verdict": "yes"}'), read_verdict("I know both films. So: **NO**.")
    ('YES', 'NO')
    >>> read_verdict("I know nothing of it.")
    Traceback (most recent call last):
    safe_stepwise.store.replies.ReplyError: it gives no verdict
    """
    reply = read_reply(text)
    answers = reply.answers("verdict", "reasoning", data=data)
    verdicts = {str(answer["verdict"]).strip().rstrip(".!").lower() for answer in answers}
    if not answers:
        words = _CHOICE.sub(" ", _MARKS.sub("", " ".join(reply.around))).strip()
        verdicts = {match[1].lower() for form in _PLAIN for match in form.finditer(words)}
    if len(verdicts) > 1:
        raise ReplyError("it gives both verdicts")
    if not verdicts:
        raise ReplyError("it gives no verdict")
    (word,) = verdicts
    if word not in _VERDICTS:
        raise ReplyError(f"its verdict is {word[:40]!r}")
    if answers and reply.takes_back(_VERDICTS[word] == "YES", (word_ for word_ in _VERDICTS if word_ != word)):
        raise ReplyError("the words around its verdict take it back, or suppose it only")
    return _VERDICTS[word]
