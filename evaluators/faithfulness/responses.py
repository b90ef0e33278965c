"""Read the chain of steps in a trajectory, or why it has none.

The chain is the reasoning of a method, as far as the trajectory keeps it:

==============================  ====================================================================
SAFE's loop, its baselines      the accepted steps, without the Final Answer
IRCoT, TRACE                    the sentences; the triples of the chain, as sentences
SG-FSM's machines               their sub-answers, worded as `sg_fsm_safe` shows them to its verifier
CoT, SP-CoT                     the sentences of the explanation; of a vote, those of each sample
ReAct                           its thoughts
Direct                          none: its one sentence says where it looked (unstructured)
==============================  ====================================================================

A sentence that only states the answer belongs to the answer, and one that says what is to be done is no step. A chain
that names nothing ("It is in Passage 7.") is unstructured (arXiv 2402.11199, C.5). No answer, or one that says that it
is unknown, is an abstention (section 3.2, C.4); a failed request is neither.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import sentencex

from evaluators.outcomes import Outcome
from evaluators.prompting.answers import sub_answers
from safe_stepwise.checking.faithfulness.grounds import Chain
from safe_stepwise.checking.faithfulness.groups import ResponseKind, claimless_places, concludes, kind_of
from safe_stepwise.checking.step_reading import read_step
from safe_stepwise.methods import react, sg_fsm_safe
from safe_stepwise.methods.prompting import ANSWERING, vote
from safe_stepwise.records import FAILED, Attempt, Trajectory
from safe_stepwise.store.replies import read_reply

Vote = Literal["only", "majority", "best_of_n"]
"""How a response counts: a vote by its majority's chain and by its best chain, every other response as ``only``."""
UNREASONED = ("direct",)
"""Methods whose prompts request no reasoning."""
LONGEST = 20_000
"""The maximum of characters of an explanation; the rest is not split into sentences."""

_MARK = re.compile(r"^[\s*_>#•-]*+(?:step\s*)?\(?\d{0,2}[.):]?(?<=[.):])\s+", re.IGNORECASE)
_BULLET = re.compile(r"^[\s*_>#•-]++")


@dataclass(frozen=True, slots=True)
class Response:
    """The chains to judge: one, or for a vote one of each readable sample."""

    kind: ResponseKind
    chains: tuple[Chain, ...] = ()
    samples: tuple[int, ...] = ()
    """The number of each chain's attempt, from 1; empty without a vote."""
    chosen: int = 0
    """The index of the chain whose answer won the vote."""


def response_of(outcome: Outcome) -> Response:
    """Return the chains of an outcome's trajectory."""
    trajectory = outcome.trajectory
    if trajectory.stop_reason == FAILED:
        return Response("failed")
    response = _response(trajectory, outcome.method)
    steps = [step for chain in response.chains for step in chain.steps]
    kind = kind_of(steps, trajectory.answer, bool(outcome.exact_match))
    return response if kind == "chain" else replace(response, kind=kind, chains=())


def _response(trajectory: Trajectory, method: str) -> Response:
    if reasoning := [step for step in trajectory.steps if step.kind != "Final Answer"]:
        texts, numbers = tuple(s.text for s in reasoning), tuple(s.number for s in reasoning)
        concluding = claimless_places((step.text, step.kind) for step in reasoning)
        return Response("chain", (Chain(texts, trajectory.answer, numbers, concluding),))
    if method in UNREASONED:
        return Response("unstructured")
    if answers := sub_answers(trajectory.attempts):
        steps = tuple(sg_fsm_safe.step_of(sub_answer, number).text for number, sub_answer in enumerate(answers, 1))
        return Response("chain", (Chain(steps, trajectory.answer),))
    if any(attempt.state == react.ACT for attempt in trajectory.attempts):
        thoughts = (_field(attempt, "thought") for attempt in trajectory.attempts)
        steps = tuple(text for thought in thoughts for text in split_sentences(thought))
        return Response("chain", (Chain(steps, trajectory.answer),))
    return _sampled_response(trajectory)


def _sampled_response(trajectory: Trajectory) -> Response:
    attempts = [(n, attempt) for n, attempt in enumerate(trajectory.attempts, 1) if attempt.state == ANSWERING]
    strict = [(n, a) for n, a in attempts if isinstance(a.read, dict) and a.read.get("form") == "strict"]
    replies = [(n, attempt) for n, attempt in strict if _field(attempt, "answer")]
    if not replies:
        return Response("unstructured")
    answers = [_field(attempt, "answer") for _, attempt in replies]
    steps = [tuple(split_sentences(_explanation(attempt))) for _, attempt in replies]
    chains = tuple(Chain(*chain) for chain in zip(steps, answers, strict=True))
    samples = tuple(number for number, _ in replies)
    draws = sum(attempt.state == ANSWERING for attempt in trajectory.attempts)
    return Response("chain", chains, samples if draws > 1 else (), answers.index(vote(answers)))


def _field(attempt: Attempt, name: str) -> str:
    value = attempt.read.get("value") if isinstance(attempt.read, dict) else None
    text = value.get(name, "") if isinstance(value, dict) else ""
    return text if isinstance(text, str) else ""


def _explanation(attempt: Attempt) -> str:
    """Return the explanation with its line breaks; the attempt keeps only its beginning, on one line."""
    excerpt = _field(attempt, "explain")
    try:
        texts = [str(text["explain"]) for text in read_reply(attempt.text).answers("explain")]
    except ValueError:
        return excerpt
    beginning = excerpt.removesuffix("…")
    return next((text for text in texts if " ".join(text.split()).startswith(beginning)), excerpt)


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of an explanation as steps, without list marks and without the conclusion.

    >>> list(split_sentences("1. Oru lies on the Vel. It is a town.\\n2. So the answer is Oru."))
    ['Oru lies on the Vel.', 'It is a town.']
    """
    for line in text[:LONGEST].splitlines():
        for piece in sentencex.segment("en", _MARK.sub("", _BULLET.sub("", line.replace("**", "")))):
            sentence = _MARK.sub("", " ".join(piece.split()))
            is_claim = re.search(r"\w", sentence) and not concludes(sentence)
            if is_claim and not read_step(sentence).announces:
                yield sentence


def votes_of(response: Response) -> Sequence[Vote]:
    return ("majority", "best_of_n") if response.samples else ("only",)
