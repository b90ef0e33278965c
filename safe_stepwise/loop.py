"""The loop of generator and verifier (SAFE v1, section 3.4): one atomic step at a time.

A step that the verifier passes is accepted, and its guidance steers the next one. One that it finds
fault with is written anew with the feedback, at most N times; after that ``on_exhausted`` decides:

- ``accept``: the last try is accepted as it is, and the feedback on it steers the next step;
- ``drop``: nothing is accepted, and the next round knows all tries that were rejected.

A reply that is no step is a try like any other, whose feedback (label ``Malformed``) says what the
grammar wants; it is never accepted. A number that does not count on from the accepted steps is set
right. A verdict that cannot be read says nothing: the step is accepted unverified, which
`unverified` counts. K rounds without an answer end in one call for it, which nobody verifies.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from safe_stepwise import verifier as verifying
from safe_stepwise.engines.base import NO_USAGE, Completion, EngineError, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.feedback import FeedbackError, parse_feedback
from safe_stepwise.generator import FEEDBACK_FORMS, FeedbackForm, generator_request
from safe_stepwise.records import (
    Attempt,
    Feedback,
    Question,
    Step,
    StopReason,
    Trajectory,
    Usage,
)
from safe_stepwise.steps import ANSWER_MARKER, StepError, final_answer, parse_step
from safe_stepwise.taxonomy import CORRECT, STEP_KINDS

Method = Literal["no_verification", "self_verification", "safe"]
METHODS: tuple[Method, ...] = get_args(Method)
OnExhausted = Literal["accept", "drop"]

MALFORMED = "Malformed"
"""The label of a reply that is no step. It is none of the taxonomy: no verifier gives it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """K, N, what happens when N is used up, and what the generator is told of a verdict."""

    max_steps: int = 10
    max_retries: int = 3
    on_exhausted: OnExhausted = "accept"
    feedback: FeedbackForm = "full"

    def __post_init__(self) -> None:
        if self.max_steps < 1 or self.max_retries < 0:
            raise ValueError("max_steps has to be 1 or more, max_retries 0 or more")
        if self.on_exhausted not in get_args(OnExhausted):
            raise ValueError(f"on_exhausted is accept or drop, not {self.on_exhausted!r}")
        if self.feedback not in FEEDBACK_FORMS:
            raise ValueError(f"feedback is one of {', '.join(FEEDBACK_FORMS)}")


DEFAULT = Limits()
"""The paper's K and N."""


async def run_question(
    question: Question, generator: Client, verifier: Client | None, limits: Limits = DEFAULT
) -> Trajectory:
    """Everything that was done to answer one question.

    The method follows from the clients: without a verifier none is asked, with the generator's own
    client it verifies itself. Engines see the question's text and passages alone; those that
    simulate also its annotations. A request that fails for good ends the question: ``failed``.
    """
    run = _Run(question, generator, verifier, limits)
    try:
        stop = await run.to_the_end()
    except EngineError:
        stop = "failed"
    return Trajectory(
        question_id=question.id,
        method=method_of(generator, verifier),
        steps=tuple(run.steps),
        attempts=tuple(run.attempts),
        answer=run.answer if stop != "failed" else "",
        stop_reason=stop,
    )


def method_of(generator: Client, verifier: Client | None) -> Method:
    """What a pair of clients amounts to."""
    if verifier is None:
        return "no_verification"
    return "self_verification" if verifier is generator else "safe"


def read_reply(text: str, number: int) -> Step:
    """The step that a generator's reply holds, numbered as asked for.

    Raises StepError where there is none.

    >>> read_reply("Step 7: Oru lies on the Vel. (Logical)", 2)
    Step(number=2, text='Oru lies on the Vel.', kind='Logical')
    """
    return replace(parse_step(text), number=number)


def read_answer(text: str, number: int) -> Step | None:
    """The final step that a reply holds, though its head or tag be missing; None if it has none.

    >>> read_answer("####ANSWER: Oru", 3)
    Step(number=3, text='####ANSWER: Oru', kind='Final Answer')
    >>> read_answer("Passage 2 says ####ANSWER: Oru", 3) is None
    True
    """
    head, tag = f"Step {number}: ", " (Final Answer)"
    for whole in (text, head + text, text + tag, head + text + tag):
        try:
            step = read_reply(whole, number)
        except StepError:
            continue
        if step.kind == "Final Answer":
            return step
    return None


def unverified(trajectory: Trajectory) -> int:
    """Steps that were accepted because the verdict on them could not be read."""
    if trajectory.method == "no_verification":
        return 0
    tries = tries_at_steps(trajectory)
    return sum(attempt.accepted and attempt.feedback is None for attempt in tries)


def tries_at_steps(trajectory: Trajectory) -> tuple[Attempt, ...]:
    """The attempts without the last call for an answer, which is no try at a step."""
    asked = trajectory.stop_reason == "max_steps"
    return trajectory.attempts[:-1] if asked else trajectory.attempts


@dataclass(slots=True)
class _Run:
    """One question under way."""

    question: Question
    generator: Client
    verifier: Client | None
    limits: Limits
    steps: list[Step] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    advice: Feedback | None = None
    """The verdict on the last accepted step."""
    rejected: list[tuple[str, Feedback]] = field(default_factory=list)
    """Tries at the next step, with what was said of them."""

    @property
    def answer(self) -> str:
        """What was submitted, if anything was."""
        last = self.steps[-1] if self.steps else None
        return final_answer(last) if last and last.kind == "Final Answer" else ""

    async def to_the_end(self) -> StopReason:
        for _ in range(self.limits.max_steps):
            await self._round()
            if self.answer:
                return "answered"
        await self._ask_for_answer()
        return "max_steps"

    async def _round(self) -> None:
        """One step, tried until it is accepted or the retries are used up."""
        for retry in range(self.limits.max_retries + 1):
            is_last = retry == self.limits.max_retries
            if await self._try(accept_anyway=is_last and self.limits.on_exhausted == "accept"):
                return

    async def _try(self, accept_anyway: bool) -> bool:
        number = len(self.steps) + 1
        reply = await self.generator.ask(self._request())
        try:
            step = read_reply(reply.text, number)
        except StepError as error:
            self._keep(reply, malformed(error, number), False)
            return False
        try:
            feedback, usage = await self._verdict(step)
        except EngineError:
            self._keep(reply, None, False)
            raise
        passed = feedback is None or feedback.error_type == CORRECT or accept_anyway
        self._keep(reply, feedback, passed, usage)
        if passed:
            self.steps.append(step)
            self.advice = feedback
            self.rejected.clear()
        return passed

    async def _verdict(self, step: Step) -> tuple[Feedback | None, Usage]:
        """What the verifier says; None if there is none, or its reply cannot be read."""
        if self.verifier is None:
            return None, NO_USAGE
        q, previous = self.question, tuple(self.steps)
        request = verifying.verifier_request(q.question, q.passages, previous, step)
        reply = await self.verifier.ask(replace(request, question=q, previous=previous, step=step))
        try:
            return parse_feedback(reply.text), reply.usage
        except FeedbackError:
            return None, reply.usage

    async def _ask_for_answer(self) -> None:
        reply = await self.generator.ask(self._request(final=True))
        step = read_answer(reply.text, len(self.steps) + 1)
        self._keep(reply, None, step is not None)
        if step is not None:
            self.steps.append(step)

    def _request(self, final: bool = False) -> Request:
        q, previous = self.question, tuple(self.steps)
        request = generator_request(
            q.question,
            q.passages,
            previous,
            self.advice,
            self.rejected,
            form=self.limits.feedback,
            final=final,
        )
        said = self.rejected[-1][1] if self.rejected else None
        return replace(request, question=q, previous=previous, feedback=said)

    def _keep(
        self,
        reply: Completion,
        feedback: Feedback | None,
        accepted: bool,
        verifier_usage: Usage = NO_USAGE,
    ) -> None:
        number = len(self.steps) + 1
        attempt = Attempt(number, reply.text, feedback, accepted, reply.usage, verifier_usage)
        self.attempts.append(attempt)
        if feedback is not None and not accepted:
            self.rejected.append((reply.text, feedback))


def malformed(error: StepError, number: int) -> Feedback:
    """What is said of a reply that is no step."""
    kinds = " or ".join(f"({kind})" for kind in STEP_KINDS[:-1])
    # No angle brackets: in a prompt they could be taken for a mark of a chat template.
    return Feedback(
        MALFORMED,
        f"The reply is not one step in the form asked for: {error}.",
        f"Write one step alone: 'Step {number}: ...' with {kinds} behind it, or "
        f"'Step {number}: {ANSWER_MARKER} ... (Final Answer)'.",
    )
