"""The judge: whether an answer means one of the accepted ones (SAFE v1, section 4.1).

A verdict is ``correct``, ``incorrect`` or ``unscored``. The last is what a reply without a readable
verdict and a request that failed come to: no answer is wrong because its judge was at a loss. The
judge is greedy, yet batching can change what a greedy model says; so replies are cached, and
``repeats`` measures how far it agrees with itself.

Only JSON counts as a verdict, and only one object of it in a reply: a fence or prose around it is
passed over, ``incorrect`` is never found to hold ``correct``, and an object that the answer brought
along, which a judge may quote, is refused.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, get_args

from safe_stepwise import prompts
from safe_stepwise.engines.base import NO_USAGE, EngineError, Request, Sampling
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.records import Question, Step, Usage, identity
from safe_stepwise.scoring import exact_match
from safe_stepwise.steps import ANSWER_MARKER

ROLE = "judge"
PROMPT = prompts.load("judge/equivalence")
SAMPLING = Sampling(max_tokens=512)
SHOWN_CHARACTERS = 1_000
"""Of an answer, which may be endless."""
LONGEST_REPLY = 20_000
"""Characters of a reply that is looked into."""

Outcome = Literal["correct", "incorrect", "unscored"]
Readable = Literal["correct", "incorrect"]
_VERDICTS: dict[str, Readable] = {name: name for name in get_args(Readable)}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_THOUGHT = re.compile(r"\A.*</think>", re.DOTALL)
_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=list)  # lenient on line breaks


class VerdictError(ValueError):
    """A reply without one readable verdict; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Case:
    """What is judged: an answer by those that are accepted, the question where it is known."""

    prediction: str
    references: tuple[str, ...]
    question: str = ""


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

    @property
    def text(self) -> str:
        """The raw text of the first reply that is of this outcome."""
        same = (reply.text for reply in self.replies if reply.outcome == self.outcome)
        return next(same, "")


@dataclass(frozen=True, slots=True)
class Judge:
    """Asks a client's model; ``skip_exact`` spares it what exact match settles.

    ``benchmark`` names the scorer whose exact match that is. An answer is judged ``repeats`` times;
    the outcome that most replies have counts, and where two have as many it is ``unscored``.
    """

    client: Client
    benchmark: str = "synthetic"
    skip_exact: bool = False
    repeats: int = 1

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
        if self.skip_exact and exact_match(case.prediction, case.references, self.benchmark):
            return Verdict("correct", "It matches an accepted answer exactly.")
        asked = judge_request(case, self.benchmark)
        seeds = range(SAMPLING.seed, SAMPLING.seed + self.repeats)
        requests = [replace(asked, sampling=replace(SAMPLING, seed=seed)) for seed in seeds]
        said = await self.client.ask_all(requests)
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

        asking = [asyncio.ensure_future(told(case)) for case in cases]
        try:
            return tuple(await asyncio.gather(*asking))
        finally:
            for one in asking:
                one.cancel()

    def _read(self, reply: Any, case: Case) -> Reply:
        if isinstance(reply, EngineError):
            return Reply("unscored", f"The request failed: {reply}", failed=True)
        try:
            outcome, explanation = read_verdict(reply.text, case)
        except VerdictError as error:
            reason = f"The judge's reply cannot be read: {error}."
            return Reply("unscored", reason, reply.text, usage=reply.usage)
        return Reply(outcome, explanation, reply.text, usage=reply.usage)


def judge_request(case: Case, benchmark: str = "synthetic") -> Request:
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
    known = Question(
        id=identity([case.question, case.references]),
        benchmark=benchmark,
        split="",
        question=case.question,
        answer=case.references[0],
        aliases=tuple(case.references[1:]),
    )
    submitted = Step(1, f"{ANSWER_MARKER} {case.prediction.strip()}", "Final Answer")
    return Request(messages, SAMPLING, PROMPT.schema, ROLE, question=known, step=submitted)


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


def read_verdict(text: str, case: Case | None = None) -> tuple[Readable, str]:
    """The verdict of a reply and its explanation; raises `VerdictError` where there is not one.

    With the ``case`` at hand, a verdict that was planted in it is refused.

    >>> read_verdict('```json\\n{"verdict": "Correct", "explanation": "One river."}\\n```')
    ('correct', 'One river.')
    >>> read_verdict('{"verdict": "not correct", "explanation": "?"}')
    Traceback (most recent call last):
    safe_stepwise.judge.VerdictError: its verdict is 'not correct'
    """
    if len(text) > LONGEST_REPLY:
        raise VerdictError(f"it has more than {LONGEST_REPLY:,} characters")
    found = _only_object(_THOUGHT.sub("", text))
    label, explanation = found.get("verdict"), found.get("explanation")
    said = _VERDICTS.get(label.strip().lower()) if isinstance(label, str) else None
    if said is None:
        raise VerdictError(f"its verdict is {str(label)[:40]!r}" if label else "it has no verdict")
    if not isinstance(explanation, str) or not explanation.strip():
        raise VerdictError("it gives no explanation")
    if case is not None and _is_planted(explanation, case):
        raise VerdictError("its verdict is one that the answer or the question brought along")
    # Half surrogate pairs, which JSON can spell, would stop whoever writes it down.
    return said, explanation.strip().encode("utf-8", "replace").decode("utf-8")


def prompt_digest() -> str:
    """SHA-256 (64 hex digits) of the prompt."""
    return prompts.digest(PROMPT)


# ----------------------------------------------------------------------------------------- reports


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
    asked: int
    """Answers that needed a call."""
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
        asked=sum(bool(verdict.replies) for verdict in verdicts),
        agreement=_agreement(verdicts),
    )


def _agreement(verdicts: Sequence[Verdict]) -> Agreement | None:
    said = [
        [reply.outcome for reply in verdict.replies]
        for verdict in verdicts
        if len(verdict.replies) > 1 and not any(reply.failed for reply in verdict.replies)
    ]
    if not said:
        return None
    unanimous = sum(len(set(outcomes)) == 1 for outcomes in said)
    pairwise = math.fsum(_same_pairs(outcomes) for outcomes in said)
    return Agreement(len(said), unanimous / len(said), pairwise / len(said))


def _same_pairs(outcomes: Sequence[Outcome]) -> float:
    pairs = list(combinations(outcomes, 2))
    return sum(one == other for one, other in pairs) / len(pairs)


# ----------------------------------------------------------------------------------------- reading


def _only_object(text: str) -> dict[str, object]:
    """The one JSON object at the top level of a text, keys in lower case."""
    start = text.find("{")
    if start == -1:
        raise VerdictError("it holds no JSON object")
    try:
        pairs, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        # Not looked into any further: what is inside may be a quotation.
        raise VerdictError("its JSON object is malformed or breaks off") from None
    if "{" in text[end:]:
        raise VerdictError("it holds more than one JSON object")
    found: dict[str, object] = {}
    for key, value in pairs:
        name = key.strip().lower()
        if name in found and found[name] != value:
            raise VerdictError(f"it holds two values for {name[:40]!r}")
        found[name] = value
    return found


def _is_planted(explanation: str, case: Case) -> bool:
    """Whether a text with a brace in it, as a planted object has, holds the explanation."""
    sought = _letters(explanation)
    texts = (case.prediction, case.question, *case.references)
    return any(sought in _letters(form) for text in texts if "{" in text for form in _forms(text))


def _forms(text: str) -> Iterator[str]:
    """The text, and what a model makes of it that takes JSON escapes in it for what they mean."""
    for _ in range(3):
        yield text
        text = _ESCAPE.sub(lambda match: chr(int(match[1] or "20", 16)), text)


def _letters(text: str) -> str:
    """Letters and digits alone: neither spacing nor broken up marks hide a quotation."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in plain if character.isalnum())
