"""Render the request to judge whether a reasoning path is valid, in four styles, and parse the verdict.

This is the discriminative evaluation of arXiv 2402.11199 (section 3.1): a model gets a question, its answer and a
path, and replies YES or NO, at once or after reasoning, without or with worked examples.

The prompts ask for JSON with one ``verdict``. A reply in plain words counts if it clearly gives one verdict: as its
first word, followed by punctuation, as its last word, or after "the answer is". Any other reply is unreadable: "I
know" does not contain NO, and "YES or NO" is not a verdict.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from safe_stepwise import prompts
from safe_stepwise.engines.base import Allowance, Request
from safe_stepwise.methods.reading import PATTERNS
from safe_stepwise.methods.scene import PathScene
from safe_stepwise.records import Triple
from safe_stepwise.store.replies import ReplyError, read_reply

Style = Literal["zero_shot", "zero_shot_reasoning", "few_shot", "few_shot_reasoning"]
STYLES: tuple[Style, ...] = get_args(Style)
"""The styles of the paper's four prompts; its "CoT" is called reasoning."""
Verdict = Literal["YES", "NO"]
_VERDICTS: Mapping[str, Verdict] = {"yes": "YES", "no": "NO"}
_PROMPTS = {is_long: f"paths/zero_shot{'_reasoning' * is_long}" for is_long in (False, True)}
_MARKS, _CHOICE = re.compile(PATTERNS["marks"]), re.compile(PATTERNS["choice"], re.IGNORECASE)
_PLAIN = (
    *(re.compile(PATTERNS[name], re.IGNORECASE) for name in ("first_word", "last_sentence", "verdict_is")),
    re.compile(r"\b(YES|NO)\W*$"),
)
"""Patterns of a plain verdict: the first word; the last sentence; "the answer is"; the last word, in capitals."""


def path_request(
    question: str, answer: str, path: Sequence[Triple], style: Style = "zero_shot", gold: Sequence[Triple] = ()
) -> Request:
    """Render the greedy request for a verdict on a path; only a simulated model sees the ``gold`` path.

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
    examples = prompts.examples([prompt.role]) if style.startswith("few_shot") else None
    return Allowance.by_role(examples=examples).apply(prompt.request(messages, scene))


def prompt_of(style: Style) -> str:
    return _PROMPTS[style.endswith("reasoning")]


def roles() -> tuple[str, ...]:
    """Return the roles of the path prompts."""
    return prompts.roles_of(_PROMPTS.values())


def read_verdict(text: str, data: str = "") -> Verdict:
    """Parse the verdict in a reply; raise ``ReplyError`` with the reason unless there is exactly one.

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
