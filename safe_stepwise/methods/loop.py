"""The loop of generator and verifier (SAFE v1, section 3.4): one atomic step at a time.

A step that the verifier passes is accepted, and its guidance steers the next one. One that it finds fault with is
written anew with the feedback, at most N times; after that ``on_exhausted`` decides:

- ``accept``: the last try is accepted as it is, and the feedback on it steers the next step;
- ``drop``: nothing is accepted, and the next round knows all tries that were rejected.

A reply that is no step is a try like any other, whose feedback (label ``Malformed``) says what the grammar wants; it
is never accepted. A number that does not count on from the accepted steps is set right. A verdict that cannot be read
(no label, none of the taxonomy's, two that differ, one that stands in what was judged) never accepts a step: it is a
rejection, whose feedback (label ``Unread``) asks for the step in other words. Only where the retries are used up may
``accept`` take it, which `unverified` counts. K rounds without an answer end in one call for it, which nobody
verifies. A question whose first `HOPELESS` replies are all no step has no more rounds: that call comes at once.

The papers leave some of this open, or choose otherwise: see `Limits`.

With a ``search`` the evidence may be incomplete (SAFE v2, finding 5): the verifier may say Missing Evidence, with a
query. What is found and new comes behind the passages at hand, and the step is written anew, which counts as a retry.
A step that stays without evidence ends the question by the rule of `searching`: it is asked for its answer, the stop
reason being ``no_evidence``. Without a verifier nobody searches.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from safe_stepwise import prompts
from safe_stepwise.engines.base import Completion, EngineError, Request, collect_thoughts
from safe_stepwise.engines.client import Client
from safe_stepwise.feedback import FeedbackError, parse_feedback
from safe_stepwise.methods import verifier as verifying
from safe_stepwise.methods.generator import generator_request
from safe_stepwise.methods.learnt_prompts import adopt_learnt_category, adopt_learnt_prompts
from safe_stepwise.methods.limits import DEFAULT, Limits
from safe_stepwise.methods.scene import Scene
from safe_stepwise.methods.searching import NO_EVIDENCE, Searching, note_vain_search
from safe_stepwise.records import ANSWERED, FAILED, Attempt, Feedback, Passage, Question, Step, Trajectory
from safe_stepwise.steps import ANSWER_MARKER, StepError, final_answer, read_step
from safe_stepwise.taxonomy import CORRECT, STEP_KINDS

GENERATOR, VERIFIER = "generator", "verifier"
"""Who is asked, and whose tokens are counted."""
OUT_OF_STEPS = "max_steps"
"""The stop reason of who had to be asked for the answer."""
FINAL_ANSWER = "final answer"
"""The state of that last attempt, which is no try at a step."""

HOPELESS = 8
"""Replies, all that a question got, of which none is a step: with more of them it would be answered no better."""
MALFORMED = "Malformed"
"""The label of a reply that is no step. It is none of the taxonomy: no verifier gives it."""

UNREAD = "Unread"
"""The label of a step on which no verdict could be read; none of the taxonomy either."""
_UNREAD = Feedback(
    UNREAD,
    "No verdict on this step could be read, so that it does not count as verified.",
    "Write the step in other words, as plainly as possible.",
)


async def run_question(
    question: Question, generator: Client, verifier: Client | None, limits: Limits = DEFAULT, method: str = "safe"
) -> Trajectory:
    """Everything that was done to answer one question, under the name of a ``method``.

    Without a verifier none is asked; one that is the generator's own client verifies itself.
    Engines see the question's text and passages alone; those that simulate also its annotations. A
    request that fails for good ends the question: ``failed``.
    """
    run, failure = _Run(question, generator, verifier, limits), ""
    try:
        stop = await run.to_the_end()
    except EngineError as error:
        stop, failure = FAILED, str(error)
    return Trajectory(
        question_id=question.id,
        method=method,
        steps=tuple(run.steps),
        attempts=tuple(run.attempts),
        answer=run.answer if stop != FAILED else "",
        stop_reason=stop,
        failure=failure,
    )


def read_reply(text: str, number: int) -> Step:
    """The step that a generator's reply holds, numbered as asked for; Markdown around it is set aside.

    Raises StepError where there is none.

    >>> read_reply("Step 7: Oru lies on the Vel. (Logical)", 2)
    Step(number=2, text='Oru lies on the Vel.', kind='Logical')
    >>> read_reply("**Step 2:** Oru lies on the Vel. (Logical)", 2).text
    'Oru lies on the Vel.'
    """
    return replace(read_step(text), number=number)


def read_answer(text: str, number: int) -> Step | None:
    """The final step that a reply holds, though its head or tag be missing; None if it has none.

    >>> read_answer("####ANSWER: Oru", 3)
    Step(number=3, text='####ANSWER: Oru', kind='Final Answer')
    >>> read_answer("Passage 2 says ####ANSWER: Oru", 3) is None
    True
    """
    head, tag = f"Step {number}: ", " (Final Answer)"
    for candidate in (text, head + text, text + tag, head + text + tag):
        try:
            step = read_reply(candidate, number)
        except StepError:
            continue
        if step.kind == "Final Answer":
            return step
    return None


def unverified(trajectory: Trajectory) -> int:
    """Steps that were accepted in the end though no verdict on them could be read."""
    return sum(is_unread(attempt) and attempt.accepted for attempt in trajectory.attempts)


def is_unread(attempt: Attempt) -> bool:
    """Whether the verdict on an attempt could not be read."""
    return attempt.feedback is not None and attempt.feedback.error_type == UNREAD


def tries_at_steps(trajectory: Trajectory) -> tuple[Attempt, ...]:
    """The attempts without the last call for an answer, which is no try at a step.

    Nor are the moves of a machine, which all lead from state to state.
    """
    tries = (attempt for attempt in trajectory.attempts if not attempt.next_state)
    return tuple(attempt for attempt in tries if attempt.state != FINAL_ANSWER)


GENERATE = ("loop/generate", "loop/final_answer")
VERIFY = ("loop/verify",)
"""Prompts of the two roles."""


@dataclass
class Stepwise:
    """The loop with the player of ``judged_by`` as verifier, or without one."""

    name: str
    title: str
    roles: tuple[str, ...] = (GENERATOR,)
    prompts: tuple[str, ...] = GENERATE + VERIFY
    judged_by: str | None = GENERATOR
    options = Limits

    def prompts_of(self, options: Limits) -> tuple[str, ...]:
        """The prompts that some options ask by."""
        prompt_set = options.prompt_set
        generate = (prompt_set.generate, prompt_set.final_answer)
        return generate if self.judged_by is None else generate + prompt_set.verifying

    async def answer(self, question: Question, clients: Mapping[str, Client], options: Limits) -> Trajectory:
        """Answer one question; the trajectory keeps every attempt."""
        verifier = clients[self.judged_by] if self.judged_by else None
        return await run_question(question, clients[GENERATOR], verifier, options, self.name)

    def resolve_options(self, options: Limits, clients: Mapping[str, Client]) -> Limits:
        """Return the options with the prompts that the engines were trained with (`learnt_prompts`)."""
        resolved: Limits = adopt_learnt_prompts(options, (client.engine for client in clients.values()))
        if self.judged_by is not None:
            judge = clients[self.judged_by]
            resolved = adopt_learnt_category(resolved, judge.engine, judge.allowance, verifying.ROLE)
        return resolved


@dataclass(slots=True)
class _Run:
    """One question under way."""

    question: Question
    """With the passages at hand: its own, then those that were retrieved."""
    generator: Client
    verifier: Client | None
    limits: Limits
    steps: list[Step] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    advice: Feedback | None = None
    """The verdict on the last accepted step."""
    rejected: list[tuple[str, Feedback]] = field(default_factory=list)
    """Tries at the next step, with what was said of them."""
    searching: Searching = field(init=False)

    def __post_init__(self) -> None:
        self.searching = Searching(self.limits.search)

    @property
    def answer(self) -> str:
        """The submitted answer, or ""."""
        last = self.steps[-1] if self.steps else None
        return final_answer(last) if last and last.kind == "Final Answer" else ""

    async def to_the_end(self) -> str:
        for _ in range(self.limits.max_steps):
            for retries_left in reversed(range(self.limits.tries)):
                if await self._try(is_last=not retries_left) or self.searching.is_over:
                    break
            if self.answer:
                return ANSWERED
            labels = {attempt.feedback.error_type for attempt in self.attempts if attempt.feedback}
            is_hopeless = len(self.attempts) >= HOPELESS and labels == {MALFORMED}
            if self.searching.is_over or is_hopeless:
                break
        reply = await self.generator.complete(self._request(final=True))
        step = read_answer(reply.text, len(self.steps) + 1)
        self._keep(reply, None, step is not None, state=FINAL_ANSWER)
        if step is not None:
            self.steps.append(step)
        return NO_EVIDENCE if self.searching.is_over else OUT_OF_STEPS

    async def _try(self, is_last: bool) -> bool:
        number, is_due = len(self.steps) + 1, self._is_due()
        reply = await self.generator.complete(self._request(final=is_due))
        try:
            if reply.flaw:
                raise StepError(reply.flaw)
            step = (is_due and read_answer(reply.text, number)) or read_reply(reply.text, number)
        except StepError as error:
            self._keep(reply, malformed(error, number), False)
            return False
        try:
            feedback, judged = await self._verdict(step)
        except EngineError:
            self._keep(reply, None, False)
            raise
        passages = self.searching.run_query(self.question, feedback, is_last)
        if passages:
            self.question = replace(self.question, passages=(*self.question.passages, *passages))
        is_sound = feedback is None or feedback.error_type == CORRECT
        anyway = is_last and self.limits.on_exhausted == "accept" and not self.searching.is_over
        self._keep(reply, feedback, is_sound or anyway, judged, passages)
        if is_sound or anyway:
            self.steps.append(step)
            self.advice = feedback if feedback is not _UNREAD else None
            self.rejected.clear()
            self.searching.reset_after(feedback)
        return is_sound or anyway

    def _is_due(self) -> bool:
        """Whether the verifier's last word, as the generator is told it, asks for the answer."""
        if not self.limits.answer_when_told or self.limits.feedback == "diagnosis":
            return False
        verdicts = [self.advice, *(remark for _, remark in self.rejected)]
        readable = [verdict for verdict in verdicts if verdict and verdict.error_type not in (MALFORMED, UNREAD)]
        return bool(readable) and ANSWER_MARKER in readable[-1].guidance

    async def _verdict(self, step: Step) -> tuple[Feedback | None, Completion | None]:
        """Ask for the verdict; return it with its reply, or None where nobody verifies."""
        if self.verifier is None:
            return None, None
        q, previous = self.question, tuple(self.steps)
        incomplete, dropped = self.limits.search is not None, self.limits.drop_category
        request = verifying.verifier_request(
            q.question, q.passages, previous, step, incomplete, dropped, self.limits.prompt_set
        )
        reply = await self.verifier.complete(replace(request, scene=Scene(q, previous=previous, step=step)))
        try:
            return parse_feedback(reply.text, incomplete, prompts.data_of(request), dropped), reply
        except FeedbackError:
            return _UNREAD, reply

    def _request(self, final: bool = False) -> Request:
        q, previous, limits = self.question, tuple(self.steps), self.limits
        request = generator_request(
            q.question,
            q.passages,
            previous,
            self.advice,
            self.rejected[-1:] if limits.last_rejected else self.rejected,
            form=limits.feedback,
            praise=limits.accepted_diagnosis,
            final=final,
            prompt_set=limits.prompt_set,
        )
        last_verdict = self.rejected[-1][1] if self.rejected else None
        return replace(request, scene=Scene(q, previous=previous, feedback=last_verdict))

    def _keep(
        self,
        reply: Completion,
        feedback: Feedback | None,
        accepted: bool,
        judged: Completion | None = None,
        retrieved: tuple[Passage, ...] = (),
        state: str = "",
    ) -> None:
        replies = {GENERATOR: reply, **({VERIFIER: judged} if judged else {})}
        attempt = Attempt(
            len(self.steps) + 1,
            reply.transcript,
            feedback,
            accepted,
            usage={role: completion.usage for role, completion in replies.items()},
            retrieved=retrieved,
            verdict=judged.transcript if judged and feedback is _UNREAD else "",
            state=state,
            thoughts=collect_thoughts(replies),
        )
        self.attempts.append(attempt)
        if self.limits.on_attempt is not None:
            self.limits.on_attempt(attempt)
        if feedback is not None and not accepted:
            self.rejected.append((reply.transcript, note_vain_search(feedback, retrieved)))


def malformed(error: StepError, number: int) -> Feedback:
    """Build the feedback on a reply that is no step."""
    kinds = " or ".join(f"({kind})" for kind in STEP_KINDS[:-1])
    # No angle brackets: in a prompt they could be taken for a mark of a chat template.
    return Feedback(
        MALFORMED,
        f"The reply is not one step in the form asked for: {error}.",
        f"Write one step alone: 'Step {number}: ...' with {kinds} behind it, or "
        f"'Step {number}: {ANSWER_MARKER} ... (Final Answer)'.",
    )


NO_VERIFICATION = Stepwise("no_verification", "No verification", prompts=GENERATE, judged_by=None)
"""Steps that nobody judges, every one in the right form being accepted (SAFE v1, section 4.1)."""
SELF_VERIFICATION = Stepwise("self_verification", "Self-verification")
"""Steps that the generator judges itself (SAFE v1, section 4.1)."""
SAFE = Stepwise("safe", "SAFE", (GENERATOR, VERIFIER), judged_by=VERIFIER)
"""A trained verifier judges every step (SAFE v1, section 3.4)."""
