"""Runs the loop of generator and verifier (SAFE v1, section 3.4): one atomic step at a time.

A step that the verifier passes is accepted, and its guidance steers the next one. A faulty step is written again with
the feedback, at most N times; then ``on_exhausted`` decides:

- ``accept``: the last attempt is accepted as it is, and its feedback steers the next step;
- ``drop``: nothing is accepted, and the next round shows all rejected attempts.

A reply that is not a step counts as an attempt. Its feedback (label ``Malformed``) explains the grammar, and it is
never accepted. A wrong step number is corrected. An unreadable verdict (no label, an unknown one, two different ones,
or one copied from the judged text) rejects the step; its feedback (label ``Unread``) asks for other words. Only
``accept`` with no retries left can take such a step, and `unverified` counts it. With ``accept_above``, a step that is
called Correct with a lower score is rejected, too (label ``Unsure``). After K rounds without an answer, one
last call asks for it; nobody verifies that reply. If the first `HOPELESS` replies are all no steps, that call comes at
once. `Limits` has the options where the papers differ.

With a ``search`` the evidence may be incomplete (SAFE v2, finding 5): the verifier may answer Missing Evidence with a
query. New passages are added after the others, and the step is written again, which counts as a retry. A step that
stays without evidence ends the question by the rule of `searching`, with the stop reason ``no_evidence``. Without a
verifier, nobody searches."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from safe_stepwise import prompts
from safe_stepwise.engines.base import Completion, EngineError, Request, collect_thoughts
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import FeedbackError, parse_feedback
from safe_stepwise.methods.generator import generator_request
from safe_stepwise.methods.learnt_prompts import adopt_learnt_prompts
from safe_stepwise.methods.limits import DEFAULT, Limits
from safe_stepwise.methods.reading import wait_for_end
from safe_stepwise.methods.scene import Scene
from safe_stepwise.methods.searching import NO_EVIDENCE, Searching, note_vain_search
from safe_stepwise.methods.verifier import request_verdict
from safe_stepwise.records import ANSWERED, FAILED, Attempt, Feedback, Passage, Question, Step, Trajectory
from safe_stepwise.steps import ANSWER_MARKER, StepError, final_answer, read_step, without_wrapping
from safe_stepwise.taxonomy import CORRECT, STEP_KINDS

GENERATOR, VERIFIER = "generator", "verifier"
OUT_OF_STEPS = "max_steps"
"""The stop reason of a question whose steps were used up before an answer."""
FINAL_ANSWER = "final answer"
"""The state of the last attempt, the call for the answer, which is not an attempt at a step."""
SCORED = "scored"
"""The state of attempts that only judge a step of a sampled chain (`best_of`)."""

HOPELESS = 8
"""Number of replies after which a question ends if none of them is a step."""
MALFORMED = "Malformed"
"""The label of a reply that is not a step; the taxonomy and verifiers don't have it."""

UNREAD = "Unread"
"""The label of a step whose verdict could not be read; the taxonomy does not have it."""
UNSURE = "Unsure"
"""The label of a step that is called Correct with too low a score; the taxonomy does not have it."""
_UNREAD = Feedback(
    UNREAD,
    "No verdict on this step could be read, so that it does not count as verified.",
    "Write the step in other words, as plainly as possible.",
)


async def ask_verdict(
    verifier: Client, question: Question, previous: Sequence[Step], step: Step, limits: Limits, *, scored: bool
) -> tuple[Feedback, Completion]:
    """Ask for the verdict on a step after ``previous`` ones; return it and the reply.

    An unreadable one has the label `UNREAD`. ``scored``: ask for the probability of *Correct*, too. Raises
    ``EngineError`` for a request that fails for good.
    """
    incomplete, dropped = limits.search is not None, limits.drop_category
    request = request_verdict(question, previous, step, incomplete, dropped, limits.prompt_set, scored=scored)
    reply = await verifier.complete(request)
    try:
        feedback = parse_feedback(reply.text, incomplete, prompts.data_of(request), dropped)
    except FeedbackError:
        return _UNREAD, reply
    return replace(feedback, score=reply.score), reply


async def run_question(
    question: Question, generator: Client, verifier: Client | None, limits: Limits = DEFAULT, method: str = "safe"
) -> Trajectory:
    """Answer one question by the loop and return its trajectory, under the name of a ``method``.

    Without a verifier, every step in the right form is accepted. Engines see only the question's text and passages;
    simulating ones also see its annotations. A request that fails for good ends the question with ``failed``.
    """
    run = _Run(question, generator, verifier, limits, Searching(limits.search))
    stop, failure = await wait_for_end(run.to_the_end())
    answer = run.answer if stop != FAILED else ""
    return Trajectory(question.id, method, tuple(run.steps), tuple(run.attempts), answer, stop, failure)


def read_reply(text: str, number: int) -> Step:
    """Parse the step in a generator's reply (`read_step`) and give it a number; raises ``StepError`` if there is none.

    >>> read_reply("Step 7: Oru lies on the Vel. (Logical)", 2)
    Step(number=2, text='Oru lies on the Vel.', kind='Logical')
    >>> read_reply("####ANSWER: Oru", 3)
    Step(number=3, text='####ANSWER: Oru', kind='Final Answer')
    """
    return replace(read_step(text, number), number=number)


def read_answer(text: str, number: int) -> Step | None:
    """Parse the final step in a reply to the call for an answer, which needs neither hashes nor kind; None if none is.

    >>> read_answer("Answer: Oru", 3)
    Step(number=3, text='####ANSWER: Oru', kind='Final Answer')
    >>> read_answer("Passage 2 says ####ANSWER: Oru", 3) is None
    True
    """
    for candidate in (text, f"{without_wrapping(text)} (Final Answer)"):
        with suppress(StepError):
            step = read_reply(candidate, number)
            if step.kind == "Final Answer":
                return step
    return None


def unverified(trajectory: Trajectory) -> int:
    """Count the steps that were accepted though their verdict could not be read, or was not sure enough."""
    labels = (UNREAD, UNSURE)
    verdicts = (attempt.feedback for attempt in trajectory.attempts if attempt.accepted)
    return sum(verdict is not None and verdict.error_type in labels for verdict in verdicts)


def tries_at_steps(trajectory: Trajectory) -> tuple[Attempt, ...]:
    """Return the attempts at steps: all but the last call for an answer and the moves of a machine."""
    tries = (attempt for attempt in trajectory.attempts if not attempt.next_state)
    return tuple(attempt for attempt in tries if attempt.state != FINAL_ANSWER)


GENERATE = ("loop/generate", "loop/final_answer")
VERIFY = ("loop/verify",)
"""The prompts of the two roles."""


@dataclass
class Stepwise:
    """The loop as a method; ``judged_by`` is the role that verifies, None for no verification."""

    name: str
    title: str
    roles: tuple[str, ...] = (GENERATOR,)
    prompts: tuple[str, ...] = GENERATE + VERIFY
    judged_by: str | None = GENERATOR
    options = Limits

    def prompts_of(self, options: Limits) -> tuple[str, ...]:
        """Return the prompt files that the options choose."""
        prompt_set = options.prompt_set
        generate = (prompt_set.generate, prompt_set.final_answer)
        return generate if self.judged_by is None else generate + prompt_set.verifying

    async def answer(self, question: Question, clients: Mapping[str, Client], options: Limits) -> Trajectory:
        """Answer one question; the trajectory has every attempt."""
        verifier = clients[self.judged_by] if self.judged_by else None
        return await run_question(question, clients[GENERATOR], verifier, options, self.name)

    def resolve_options(self, options: Limits, clients: Mapping[str, Client]) -> Limits:
        """Return the options with the prompts that the engines were trained with (`learnt_prompts`)."""
        judge = clients[self.judged_by] if self.judged_by else None
        resolved: Limits = adopt_learnt_prompts(options, (client.engine for client in clients.values()), judge)
        return resolved


@dataclass(slots=True)
class _Run:
    question: Question
    """The question with its own passages, then the retrieved ones."""
    generator: Client
    verifier: Client | None
    limits: Limits
    searching: Searching
    steps: list[Step] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    advice: Feedback | None = None
    """The verdict on the last accepted step."""
    rejected: list[tuple[str, Feedback]] = field(default_factory=list)
    """The rejected attempts at the next step, each with its feedback."""

    @property
    def answer(self) -> str:
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
        """Whether the last guidance that the generator is shown asks for the answer."""
        if not self.limits.answer_when_told or self.limits.feedback == "diagnosis":
            return False
        verdicts = [self.advice, *(remark for _, remark in self.rejected)]
        readable = [verdict for verdict in verdicts if verdict and verdict.error_type not in (MALFORMED, UNREAD)]
        return bool(readable) and ANSWER_MARKER in readable[-1].guidance

    async def _verdict(self, step: Step) -> tuple[Feedback | None, Completion | None]:
        """Ask for the verdict on a step; return it and the reply, both None without a verifier."""
        if self.verifier is None:
            return None, None
        scored = bool(self.limits.scores or self.limits.accept_above is not None)
        feedback, reply = await ask_verdict(self.verifier, self.question, self.steps, step, self.limits, scored=scored)
        return self._doubted(feedback), reply

    def _doubted(self, feedback: Feedback) -> Feedback:
        """Reject a Correct step that scores below `Limits.accept_above`; raises ``UserError`` if there is no score."""
        needed, score = self.limits.accept_above, feedback.score
        if needed is None or feedback.error_type != CORRECT:
            return feedback
        if score is None:
            name = self.verifier.name if self.verifier else ""
            raise UserError(f"{name}: tells no probability of Correct, which accept_above needs; leave it out")
        if score >= needed:
            return feedback
        diagnosis = f"The verifier is not sure enough of this step: {score:.2f}, and {needed:g} is needed."
        return Feedback(UNSURE, diagnosis, _UNREAD.guidance, score=score)

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
    """Build the feedback on a reply that is not a step."""
    kinds = " or ".join(f"({kind})" for kind in STEP_KINDS[:-1])
    # No angle brackets: in a prompt they could be taken for a mark of a chat template.
    return Feedback(
        MALFORMED,
        f"The reply is not one step in the form asked for: {error}.",
        f"Write one step alone: 'Step {number}: ...' with {kinds} behind it, or "
        f"'Step {number}: {ANSWER_MARKER} ... (Final Answer)'.",
    )


NO_VERIFICATION = Stepwise("no_verification", "No verification", prompts=GENERATE, judged_by=None)
"""The loop without a verifier: every step in the right form is accepted (SAFE v1, section 4.1)."""
SELF_VERIFICATION = Stepwise("self_verification", "Self-verification")
"""The loop in which the generator judges its own steps (SAFE v1, section 4.1)."""
SAFE = Stepwise("safe", "SAFE", (GENERATOR, VERIFIER), judged_by=VERIFIER)
"""The loop in which a trained verifier judges every step (SAFE v1, section 3.4)."""
