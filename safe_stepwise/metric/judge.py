"""The judge: whether an answer means one of the accepted ones (SAFE v1, section 4.1).

A verdict is ``correct``, ``incorrect`` or ``unscored``. The last is what a reply without a readable verdict and a
request that failed come to: no answer is wrong because its judge was at a loss. The judge is greedy, yet batching can
change what a greedy model says; so replies are cached, and ``repeats`` measures how far it agrees with itself.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, get_args

from safe_stepwise import prompts
from safe_stepwise.engines.base import NO_USAGE, Completion, EngineError, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.methods.scene import AnswerScene
from safe_stepwise.records import Usage
from safe_stepwise.scoring import exact_match
from safe_stepwise.store.event_loop import gather_all
from safe_stepwise.store.replies import Reply as JSONReply
from safe_stepwise.store.replies import is_blank_form, is_planted, plain_key, read_reply

LONGEST_REPLY = 20_000
"""Characters of a reply that is looked into."""

Readable = Literal["correct", "incorrect"]
_VERDICTS: dict[str, Readable] = {name: name for name in get_args(Readable)}
_KEYS = ("verdict", "explanation")


# Braces of prose or a formula: they hold no key, no quotation mark, and no verdict.
_GROUP = re.compile(
    r"""(?:\\[A-Za-z]{1,20}\s?\{|\{(?!\s*(?:['“‘]|[A-Za-z_]{1,40}\s*:)))(?![^{}]*correct)([^{}"]{1,200})\}"""
    r"""|\\\{(?!\s*\\?["'“‘])(?![^{}]{0,200}correct)|\\\}""",
    re.IGNORECASE,
)
_STATED = re.compile(r"\bverdict\b\W{0,12}(?:is\W{0,5})?(correct|incorrect)\b", re.IGNORECASE)
_DEEPEST_GROUP = 8
_DENIALS = "no|nope|never|wrong|incorrect|false|not correct|not equivalent|not the same|different|mismatch"
_CONSENTS = "yes|yep|right|correct|true|equivalent|the same|match"
# A word that is a sentence of its own, or all that is in a box; no quotation, which may be of the answer.
_BARE = {
    verdict: re.compile(
        rf"(?:^|[.!?\n:{{$])[\s*_`#>$({{-]{{0,20}}(?:\\[A-Za-z]{{1,20}}\s?{{\s{{0,5}}){{0,3}}"
        rf"(?P<word>{words})[\s*_`$)]{{0,20}}(?=[{ends}]|\Z)",
        re.IGNORECASE,
    )
    for verdict, words, ends in (("correct", _DENIALS, r".!?;,\n}"), ("incorrect", _CONSENTS, r".!?\n}"))
}
"""What says the opposite of each verdict."""


class VerdictError(ValueError):
    """A reply without one readable verdict; the message is the reason."""


def read_verdict(text: str, data: Sequence[str] = ()) -> tuple[Readable, str]:
    """The verdict of a reply and its explanation; raises `VerdictError` where there is not one.

    Only JSON counts, and only one object of it in a reply, outermost and unbroken: ``incorrect`` is never found to
    hold ``correct``, and an object that the answer brought along, which a judge may quote, is refused.
    ``data`` is what was judged, and quoted in the prompt: a verdict planted in it is refused.

    >>> read_verdict('```json\\n{"verdict": "Correct", "explanation": "One river."}\\n```')
    ('correct', 'One river.')
    >>> read_verdict('{"verdict": "not correct", "explanation": "?"}')
    Traceback (most recent call last):
    safe_stepwise.metric.judge.VerdictError: its verdict is 'not correct'
    """
    if len(text) > LONGEST_REPLY:
        raise VerdictError(f"it has more than {LONGEST_REPLY:,} characters")
    reply = read_reply(text)
    found = _only_object(reply)
    label, explanation = found.get("verdict"), found.get("explanation")
    said = _VERDICTS.get(label.strip().lower()) if isinstance(label, str) else None
    if said is None:
        raise VerdictError(f"its verdict is {str(label)[:40]!r}" if label else "it has no verdict")
    if not isinstance(explanation, str) or not explanation.strip():
        raise VerdictError("it gives no explanation")
    if is_blank_form(found, _KEYS):
        raise VerdictError("it is the form alone, not filled in")
    if is_planted(found, _KEYS, "\n".join(data)):
        raise VerdictError("its verdict is one that the answer or the question brought along")
    if any(stated.lower() != said for text in reply.around for stated in _STATED.findall(text)):
        raise VerdictError("the words around its verdict state another")
    quotable = {word.strip().casefold() for word in data}
    if any(word["word"].casefold() not in quotable for text in reply.around for word in _BARE[said].finditer(text)):
        raise VerdictError("a word around its verdict denies it")
    if reply.takes_back(said == "correct", (other for other in _VERDICTS if other != said)):
        raise VerdictError("the words around its verdict take it back, or suppose it only")
    # Half surrogate pairs, which JSON can spell, would stop whoever writes it down.
    return said, explanation.strip().encode("utf-8", "replace").decode("utf-8")


def _only_object(reply: JSONReply) -> dict[str, Any]:
    """The one JSON object of a reply, be it in a list of its own, with plain keys."""
    # Not looked into any further: what is inside may be a quotation.
    if any("{" in _without_groups(text) for text in reply.around):
        reasons = [broken.reason for broken in reply.broken]
        doubled = next((reason for reason in reasons if reason.startswith("two values")), "")
        malformed = "its JSON object is malformed or breaks off"
        raise VerdictError(f"it holds {doubled}" if doubled else malformed)
    found = reply.outermost(lambda value: isinstance(value, dict))
    if not found:
        raise VerdictError("it holds no JSON object")
    alone = [*reply.values, *(v[0] for v in reply.values if isinstance(v, list) and len(v) == 1)]
    if len(found) > 1 or found[0] not in alone:
        raise VerdictError("it holds more than one JSON object")
    return {plain_key(key): value for key, value in found[0].items()}


def _without_groups(text: str) -> str:
    r"""A text without its braces that can be no object's, innermost first.

    >>> _without_groups(r"\boxed{\text{Oru}} of {Oru, Vel}").split(), _without_groups('{"verdict')
    (['Oru', 'of', 'Oru,', 'Vel'], '{"verdict')
    """
    for _ in range(_DEEPEST_GROUP if "{" in text else 0):
        text = _GROUP.sub(r" \1 ", text)
    return text


PROMPT = prompts.load("judge/equivalence")
SHOWN_CHARACTERS = 1_000
"""Of an answer, which may be endless."""

JUDGED = ("judge_without_question", "judge_examples")
"""How records call what is not our way to ask it: by the answers alone; with which examples."""

Outcome = Literal["correct", "incorrect", "unscored"]


@dataclass(frozen=True, slots=True)
class Case:
    """What is judged: an answer by those that are accepted, the question where it is known."""

    prediction: str
    references: tuple[str, ...]
    question: str = ""

    @property
    def data(self) -> tuple[str, ...]:
        """What a request quotes."""
        return (self.prediction, self.question, *self.references)


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply of the judge: what it comes to, why, its text; ``failed`` where none came."""

    outcome: Outcome
    explanation: str
    text: str = ""
    failed: bool = False
    usage: Usage = NO_USAGE


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the replies on one answer come to; there are none where no call was needed."""

    outcome: Outcome
    explanation: str
    replies: tuple[Reply, ...] = ()


@dataclass(frozen=True, slots=True)
class Judge:
    """Asks a client's model; ``skip_exact`` spares it what exact match settles.

    Unless it ``sees_question`` it goes by the answers alone (SAFE v1, Figure 14).

    An answer is judged ``repeats`` times; the outcome that most replies have counts, and where two
    have as many it is ``unscored``.
    """

    client: Client
    skip_exact: bool = False
    repeats: int = 1
    sees_question: bool = True

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise UserError(f"the judge is asked {self.repeats} times: give 1 or more")

    async def judge(self, case: Case) -> Verdict:
        """The verdict on one answer; one of nothing but white space is incorrect without a call.

        Raises ``UserError`` for a case without references.
        """
        if not case.references or isinstance(case.references, str):
            raise UserError("an answer has no references to judge it by: give at least one")
        if not case.prediction.strip():
            return Verdict("incorrect", "No answer was given.")
        if self.skip_exact and exact_match(case.prediction, case.references):
            return Verdict("correct", "It matches an accepted answer exactly.")
        asked = judge_request(case if self.sees_question else replace(case, question=""))
        greedy = asked.sampling
        seeds = range(greedy.seed, greedy.seed + self.repeats)
        requests = [replace(asked, sampling=replace(greedy, seed=seed)) for seed in seeds]
        said = await self.client.complete_all(requests)
        return verdict_of([self._read(reply, case) for reply in said])

    async def judge_all(
        self, cases: Sequence[Case], on_done: Callable[[Verdict], None] | None = None
    ) -> tuple[Verdict, ...]:
        """The verdicts on many answers, in order; raises as ``judge`` does.

        ``on_done`` hears of each verdict as soon as there is one.
        """

        async def told(case: Case) -> Verdict:
            verdict = await self.judge(case)
            if on_done is not None:
                on_done(verdict)
            return verdict

        return tuple(await gather_all(map(told, cases)))

    def _read(self, reply: Completion | EngineError, case: Case) -> Reply:
        if isinstance(reply, EngineError):
            return Reply("unscored", f"The request failed: {reply}", failed=True)
        try:
            outcome, explanation = read_verdict(reply.text, case.data)
        except VerdictError as error:
            reason = f"The judge's reply cannot be read: {reply.flaw or error}."
            return Reply("unscored", reason, reply.transcript, usage=reply.usage)
        return Reply(outcome, explanation, reply.text, usage=reply.usage)


def judge_request(case: Case) -> Request:
    """The greedy request for a verdict.

    >>> print(judge_request(Case("the Vel", ("Vel",), "Where is Oru?")).messages[1].content)
    Question: "Where is Oru?"
    Accepted answers:
    - "Vel"
    <BLANKLINE>
    Contestant's answer: "the Vel"
    """
    shown = case.prediction.strip()[:SHOWN_CHARACTERS]
    messages = PROMPT.messages(
        question=case.question.strip(),
        references=case.references,
        prediction=shown,
        left_out=len(case.prediction.strip()) - len(shown),
    )
    scene = AnswerScene(case.prediction.strip(), tuple(case.references))
    return PROMPT.request(messages, scene)


def verdict_of(replies: Sequence[Reply]) -> Verdict:
    """What replies on one answer come to: the outcome that most of them have.

    >>> said = [Reply("correct", "Same river."), Reply("unscored", "?"), Reply("correct", "Yes.")]
    >>> verdict_of(said).outcome, verdict_of(said[:2]).outcome
    ('correct', 'unscored')
    """
    counts = Counter(reply.outcome for reply in replies)
    (first, most), *others = counts.most_common()
    if any(number == most for _, number in others):
        tied = " and ".join(outcome for outcome, number in counts.items() if number == most)
        return Verdict("unscored", f"As many replies say {tied}.", tuple(replies))
    explanation = next(reply.explanation for reply in replies if reply.outcome == first)
    return Verdict(first, explanation, tuple(replies))


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far a judge agrees with itself over ``questions`` that it answered each time.

    ``unanimous`` is the share of questions on which all replies come to the same, ``pairwise`` the
    share of pairs of replies to one question that do, averaged over questions; both from 0 to 1.
    """

    questions: int
    unanimous: float
    pairwise: float


@dataclass(frozen=True, slots=True)
class Judged:
    """Verdicts counted. ``failed`` are those of ``unscored`` to which not one reply came."""

    correct: int
    incorrect: int
    unscored: int
    failed: int
    agreement: Agreement | None
    """None where no answer was judged twice."""

    @property
    def accuracy(self) -> float | None:
        """The share of correct answers among those with a verdict; None where none has one."""
        scored = self.correct + self.incorrect
        return self.correct / scored if scored else None


def count(verdicts: Sequence[Verdict]) -> Judged:
    """Verdicts counted.

    >>> found = count([Verdict("correct", "Yes."), Verdict("unscored", "?")])
    >>> found.accuracy, found.unscored
    (1.0, 1)
    """
    outcomes = Counter(verdict.outcome for verdict in verdicts)
    return Judged(
        correct=outcomes["correct"],
        incorrect=outcomes["incorrect"],
        unscored=outcomes["unscored"],
        failed=sum(bool(v.replies) and all(r.failed for r in v.replies) for v in verdicts),
        agreement=_agreement(verdicts),
    )


def _agreement(verdicts: Sequence[Verdict]) -> Agreement | None:
    repeated = [
        [reply.outcome for reply in verdict.replies]
        for verdict in verdicts
        if len(verdict.replies) > 1 and not any(reply.failed for reply in verdict.replies)
    ]
    if not repeated:
        return None
    unanimous = sum(len(set(outcomes)) == 1 for outcomes in repeated)
    same = ([a == b for a, b in combinations(outcomes, 2)] for outcomes in repeated)
    pairwise = math.fsum(sum(pairs) / len(pairs) for pairs in same)
    return Agreement(len(repeated), unanimous / len(repeated), pairwise / len(repeated))
