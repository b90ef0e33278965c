"""Reads a trajectory's chain as steps, and lets a verifier judge each of them.

A step is judged with all valid steps before it. Its score is the verifier's probability of *Correct*; without
log-probabilities it is 1 for Correct and 0 for anything else. An unreadable verdict, a text that is no step and a
chain of more than `MAX_STEPS` steps score 0: nothing vouches for them.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import sentencex

from safe_stepwise.engines.client import Client
from safe_stepwise.methods.learnt_prompts import adopt_learnt_prompts
from safe_stepwise.methods.limits import DEFAULT, Limits
from safe_stepwise.methods.loop import SCORED, UNREAD, VERIFIER, ask_verdict, malformed
from safe_stepwise.methods.sg_fsm_safe import step_of, sub_answers
from safe_stepwise.records import Attempt, Feedback, Question, Step, Trajectory
from safe_stepwise.steps import ANSWER_MARKER, StepError, format_step, unwrap_answer
from safe_stepwise.taxonomy import CORRECT, STEP_KINDS

MAX_STEPS = 40
_GRAMMAR = re.compile(
    rf"#+ ?ANSWER:?\s*|^[\s*_>#•-]++|[*_]*+\bstep\s*\d+[*_]*+\s*:[*_]*+\s*|\s*\((?:{'|'.join(STEP_KINDS)})\)\.?",
    re.IGNORECASE,
)
"""Marks of the grammar of steps, which other methods' sentences and answers may hold."""


def chain_of(trajectory: Trajectory) -> tuple[Step, ...]:
    """Return a trajectory's chain as steps for a verifier, the answer last.

    Methods without steps have their sub-answers, or the sentences of their reasons (``explain``, ``thought``): one
    that names a passage is an attribution, any other a logical step.

    >>> read = {"form": "strict", "value": {"explain": "Step 1: Passage 1 has Oru. (Logical)", "answer": "Oru"}}
    >>> told = Trajectory("q", "cot", (), (Attempt(1, "", None, True, read=read),), "Oru", "answered")
    >>> [(step.kind, step.text) for step in chain_of(told)]
    [('Attribution', 'Passage 1 has Oru.'), ('Final Answer', '####ANSWER: Oru')]
    """
    steps = trajectory.steps or tuple(_steps_of(trajectory.attempts))
    if steps and steps[-1].kind == "Final Answer":
        return steps
    answer = unwrap_answer(" ".join(_GRAMMAR.sub(" ", trajectory.answer).split()))
    return (*steps, Step(len(steps) + 1, f"{ANSWER_MARKER} {answer}", "Final Answer"))


def _steps_of(attempts: Sequence[Attempt]) -> Iterator[Step]:
    if answers := sub_answers(attempts):
        yield from (step_of(answer, number) for number, answer in enumerate(answers, 1))
        return
    sentences = (text for attempt in attempts for text in _reasons(attempt))
    for number, text in enumerate(sentences, 1):
        yield Step(number, text, "Attribution" if "Passage " in text else "Logical")


def _reasons(attempt: Attempt) -> Iterator[str]:
    """Yield the sentences of a reply's reasons, without marks of the grammar of steps."""
    value = attempt.read.get("value") if isinstance(attempt.read, dict) else None
    fields = value if isinstance(value, dict) else {}
    for text in (text for name in ("explain", "thought") if isinstance(text := fields.get(name), str)):
        for piece in sentencex.segment("en", text):
            if sentence := _GRAMMAR.sub("", " ".join(piece.split())).strip():
                yield sentence


async def judge_chain(
    question: Question, steps: Sequence[Step], verifier: Client, options: Any
) -> tuple[Attempt, ...]:
    """Return an attempt with the feedback for each step; raises ``EngineError`` for a request that fails for good."""
    if len(steps) > MAX_STEPS:
        too_long = Feedback(UNREAD, f"The chain has {len(steps)} steps; {MAX_STEPS} are judged.", "")
        return (Attempt(1, "", too_long, True, state=SCORED),)
    limits = options if isinstance(options, Limits) else DEFAULT
    limits = adopt_learnt_prompts(limits, [verifier.engine], verifier)
    verdicts, valid = list[Attempt](), list[Step]()
    for step in steps:
        try:
            text = format_step(step)
        except StepError as error:
            verdicts.append(Attempt(step.number, step.text, malformed(error, step.number), True, state=SCORED))
            continue
        feedback, reply = await ask_verdict(verifier, question, valid, step, limits, scored=True)
        unread = reply.transcript if feedback.error_type == UNREAD else ""
        usage = {VERIFIER: reply.usage}
        verdicts.append(Attempt(step.number, text, feedback, True, usage, verdict=unread, state=SCORED))
        valid.append(step)
    return tuple(verdicts)


def score_of(verdict: Attempt) -> float:
    """Return the score (0-1) of a judged step."""
    feedback = verdict.feedback
    if feedback is None or feedback.score is None:
        return float(feedback is not None and feedback.error_type == CORRECT)
    return feedback.score
