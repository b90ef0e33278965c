"""Judges by a model whether an answer means the same as an accepted one (SAFE v1, section 4.1).

A verdict is ``correct``, ``incorrect`` or ``unscored``. An answer is ``unscored``, never incorrect, if the request
failed or its reply has no readable verdict. The judge is greedy, yet batching can change the reply of a greedy model;
so replies are cached, and ``repeats`` measures how far the judge agrees with itself.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, get_args

from safe_stepwise import prompts
from safe_stepwise.engines.base import NO_USAGE, Completion, EngineError, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.methods.scene import AnswerScene
from safe_stepwise.records import Usage
from safe_stepwise.scoring import exact_match
from safe_stepwise.store.event_loop import gather_all
from safe_stepwise.store.packaged import read_patterns
from safe_stepwise.store.replies import ReplyError, is_planted, read_reply

Readable = Literal["correct", "incorrect"]
_VERDICTS: dict[str, Readable] = {name: name for name in get_args(Readable)}
_KEYS = ("verdict", "explanation")

_STATED_VERDICT = re.compile(r"\bverdict\b\W{0,12}(?:is\W{0,5})?(correct|incorrect)\b", re.IGNORECASE)
_PATTERNS = read_patterns(Path(__file__).with_suffix(".yaml"))
_BARE = {verdict: re.compile(_PATTERNS[verdict], re.IGNORECASE) for verdict in _VERDICTS}
"""Patterns of the words that contradict each verdict."""


def read_verdict(text: str, data: Sequence[str] = ()) -> tuple[Readable, str]:
    """Read the verdict and the explanation of a reply; raises `ReplyError` if it has no verdict, or several.

    A reply has to hold exactly one JSON object with a verdict, whole and not inside another. The verdict has to be the
    whole word ``correct`` or ``incorrect``. ``data`` are the texts that the prompt quoted: their verdicts are refused.

    >>> read_verdict('```json\\n{"verdict": "Correct", "explanation": "One river."}\\n```')
    ('correct', 'One river.')
    >>> read_verdict('{"verdict": "not correct", "explanation": "?"}')
    Traceback (most recent call last):
    safe_stepwise.store.replies.ReplyError: its verdict is 'not correct'
    """
    reply = read_reply(text)
    answers = reply.answers(*_KEYS)
    if not answers:
        raise ReplyError(next((broken.reason for broken in reply.broken), "it has no verdict"))
    if len(answers) > 1:
        raise ReplyError("it holds more than one verdict")
    if not reply.has_outermost("verdict"):
        raise ReplyError("it has no verdict of its own, but one within another object")
    if any(text.rstrip().endswith("{") for text in reply.around):
        raise ReplyError("its JSON object is malformed or breaks off")
    (fields,) = answers
    label, explanation = fields.get("verdict"), fields.get("explanation")
    verdict = _VERDICTS.get(label.strip().lower()) if isinstance(label, str) else None
    if verdict is None:
        raise ReplyError(f"its verdict is {str(label)[:40]!r}" if label else "it has no verdict")
    if not isinstance(explanation, str) or not explanation.strip():
        raise ReplyError("it gives no explanation")
    if is_planted(fields, _KEYS, "\n".join(data)):
        raise ReplyError("its verdict is one that the answer or the question brought along")
    if any(word.lower() != verdict for text in reply.around for word in _STATED_VERDICT.findall(text)):
        raise ReplyError("the words around its verdict state another")
    quotable = {word.strip().casefold() for word in data}
    if any(word["word"].casefold() not in quotable for text in reply.around for word in _BARE[verdict].finditer(text)):
        raise ReplyError("a word around its verdict denies it")
    if reply.takes_back(verdict == "correct", (name for name in _VERDICTS if name != verdict)):
        raise ReplyError("the words around its verdict take it back, or suppose it only")
    # JSON can spell half a surrogate pair, which no file can hold.
    return verdict, explanation.strip().encode("utf-8", "replace").decode("utf-8")


PROMPT = prompts.load("judge/equivalence")
MAX_ANSWER_CHARACTERS = 1_000
"""Characters of an answer that the prompt shows."""

JUDGED = ("judge_without_question", "judge_examples")
"""Keys in records of the judge's settings that are not the default: no question in the prompt, and the examples."""

Outcome = Literal["correct", "incorrect", "unscored"]


@dataclass(frozen=True, slots=True)
class JudgeCase:
    """An answer to judge (``prediction``), with the accepted answers and the question ("" if unknown)."""

    prediction: str
    references: tuple[str, ...]
    question: str = ""

    @property
    def data(self) -> tuple[str, ...]:
        """The texts that the judge's prompt quotes."""
        return (self.prediction, self.question, *self.references)


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """One reply of the judge: its outcome, explanation and text; ``failed`` if the request failed."""

    outcome: Outcome
    explanation: str
    text: str = ""
    failed: bool = False
    usage: Usage = NO_USAGE


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of the ``replies`` about one answer, which are empty if no request was needed."""

    outcome: Outcome
    explanation: str
    replies: tuple[JudgeReply, ...] = ()


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges answers by a client's model; with ``skip_exact`` an exact match is correct without a request.

    The prompt has the question if the judge ``sees_question``, otherwise only the answers (SAFE v1, Figure 14). An
    answer is judged ``repeats`` times; the most frequent outcome counts, and a tie is ``unscored``.
    """

    client: Client
    skip_exact: bool = False
    repeats: int = 1
    sees_question: bool = True

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise UserError(f"the judge is asked {self.repeats} times: give 1 or more")

    async def judge(self, case: JudgeCase) -> Verdict:
        """Judge one answer; an empty one is incorrect without a request. Raises ``UserError`` without references."""
        if not case.references or isinstance(case.references, str):
            raise UserError("an answer has no references to judge it by: give at least one")
        if not case.prediction.strip():
            return Verdict("incorrect", "No answer was given.")
        if self.skip_exact and exact_match(case.prediction, case.references):
            return Verdict("correct", "It matches an accepted answer exactly.")
        request = judge_request(case if self.sees_question else replace(case, question=""))
        greedy = request.sampling
        seeds = range(greedy.seed, greedy.seed + self.repeats)
        requests = [replace(request, sampling=replace(greedy, seed=seed)) for seed in seeds]
        replies = await self.client.complete_all(requests)
        return verdict_of([self._read(reply, case) for reply in replies])

    async def judge_all(
        self, cases: Sequence[JudgeCase], on_done: Callable[[Verdict], None] | None = None
    ) -> tuple[Verdict, ...]:
        """Judge answers, in order, as ``judge`` does; ``on_done`` is called with each verdict as it is there."""

        async def judge_case(case: JudgeCase) -> Verdict:
            verdict = await self.judge(case)
            if on_done is not None:
                on_done(verdict)
            return verdict

        return tuple(await gather_all(map(judge_case, cases)))

    def _read(self, reply: Completion | EngineError, case: JudgeCase) -> JudgeReply:
        if isinstance(reply, EngineError):
            return JudgeReply("unscored", f"The request failed: {reply}", failed=True)
        try:
            outcome, explanation = read_verdict(reply.text, case.data)
        except ReplyError as error:
            reason = f"The judge's reply cannot be read: {reply.flaw or error}."
            return JudgeReply("unscored", reason, reply.transcript, usage=reply.usage)
        return JudgeReply(outcome, explanation, reply.text, usage=reply.usage)


def judge_request(case: JudgeCase) -> Request:
    """Make the greedy request for a verdict.

    >>> print(judge_request(JudgeCase("the Vel", ("Vel",), "Where is Oru?")).messages[1].content)
    Question: "Where is Oru?"
    Accepted answers:
    - "Vel"
    <BLANKLINE>
    Contestant's answer: "the Vel"
    """
    prediction = case.prediction.strip()[:MAX_ANSWER_CHARACTERS]
    messages = PROMPT.messages(
        question=case.question.strip(),
        references=case.references,
        prediction=prediction,
        left_out=len(case.prediction.strip()) - len(prediction),
    )
    return PROMPT.request(messages, AnswerScene(case.prediction.strip(), tuple(case.references)))


def verdict_of(replies: Sequence[JudgeReply]) -> Verdict:
    """Return the most frequent outcome of the replies about one answer; a tie is ``unscored``.

    >>> replies = [JudgeReply("correct", "Same river."), JudgeReply("unscored", "?"), JudgeReply("correct", "Yes.")]
    >>> verdict_of(replies).outcome, verdict_of(replies[:2]).outcome
    ('correct', 'unscored')
    """
    counts = Counter(reply.outcome for reply in replies)
    winners = [outcome for outcome, votes in counts.items() if votes == max(counts.values())]
    if len(winners) > 1:
        return Verdict("unscored", f"As many replies say {' and '.join(winners)}.", tuple(replies))
    explanation = next(reply.explanation for reply in replies if reply.outcome == winners[0])
    return Verdict(winners[0], explanation, tuple(replies))


def report_verdicts(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Report verdicts as the metric does.

    ``accuracy`` is the share (0-1) of correct ones among the scored, None if none was scored; ``judge_failed`` counts
    the ``unscored`` ones whose requests all failed; ``judge_agreement`` is there if an answer was judged repeatedly.
    """
    counts = Counter(verdict.outcome for verdict in verdicts)
    scored = counts["correct"] + counts["incorrect"]
    agreement = measure_agreement(verdicts)
    return {
        "accuracy": counts["correct"] / scored if scored else None,
        "unscored": counts["unscored"],
        "judge_failed": sum(bool(v.replies) and all(r.failed for r in v.replies) for v in verdicts),
        **({"judge_agreement": agreement} if agreement else {}),
    }


def measure_agreement(verdicts: Sequence[Verdict]) -> dict[str, float] | None:
    """Measure the agreement of a judge with itself over the ``questions`` that have all their replies; None without.

    ``unanimous`` is the share of questions on which all replies have one outcome, ``pairwise`` the share of pairs of
    replies to one question with the same outcome, averaged over questions; both from 0 to 1.
    """
    groups = (verdict.replies for verdict in verdicts if len(verdict.replies) > 1)
    repeated = [[reply.outcome for reply in group] for group in groups if not any(reply.failed for reply in group)]
    if not repeated:
        return None
    unanimous = sum(len(set(outcomes)) == 1 for outcomes in repeated)
    matches = ([a == b for a, b in combinations(outcomes, 2)] for outcomes in repeated)
    pairwise = math.fsum(sum(pairs) / len(pairs) for pairs in matches)
    size = len(repeated)
    return {"questions": size, "unanimous": unanimous / size, "pairwise": pairwise / size}
