"""Read the chain of steps in a trajectory, or the reason why it has none.

The chain is the reasoning of a method, as far as the trajectory keeps it:

==============================  ====================================================================
SAFE's loop, its baselines      the accepted steps, without the Final Answer
IRCoT, TRACE                    the sentences; the triples of the chain, as sentences
SG-FSM's machines               their sub-answers, worded as `sg_fsm_safe` shows them to its verifier
CoT of any kind                 the sentences of the explanation, or numbered steps; of a vote, those of each sample
ReAct                           its thoughts
Direct                          none: its one sentence says where it looked (unstructured)
==============================  ====================================================================

Two kinds of sentences are not steps: those that only state the answer, and those that announce what to do next. A
chain that names no entity ("It is in Passage 7.") is unstructured (arXiv 2402.11199, C.5). No answer, or one that says
that it is unknown, is an abstention (section 3.2, C.4); a failed request is neither.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import sentencex

from evaluators.outcomes import Outcome
from safe_stepwise.checking.faithfulness import grounds, groups
from safe_stepwise.checking.step_reading import read_step
from safe_stepwise.methods import react, sg_fsm_safe
from safe_stepwise.methods.prompting import ANSWERING, vote
from safe_stepwise.records import FAILED, Attempt, Trajectory
from safe_stepwise.store.replies import read_reply

Selection = Literal["only", "majority", "best_of_n"]
"""Which chain of a response is judged: the only one, or of a vote the first of the majority, or the best one."""
MAX_EXPLANATION_CHARS = 20_000
"""The maximum number of characters of an explanation that are split into sentences; the rest is ignored."""

_NUMBER = re.compile(r"^[\s*_>#•-]*+(?:step\s*)?\(?\d{0,2}[.):]?(?<=[.):])\s+", re.IGNORECASE)
"""The number of a list's item, such as ``2.`` or ``Step 3:``."""
_BULLET = re.compile(r"^[\s*_>#•-]++")


@dataclass(frozen=True, slots=True)
class Response:
    """The chains to judge: one, or of a vote the chain of each readable sample."""

    kind: groups.ResponseKind
    chains: tuple[grounds.Chain, ...] = ()
    samples: tuple[int, ...] = ()
    """The number of each chain's attempt, from 1; empty without a vote."""
    chosen: int = 0
    """The index of the first chain whose answer won the vote."""


def response_of(outcome: Outcome) -> Response:
    """Return the chains of an outcome's trajectory."""
    trajectory = outcome.trajectory
    if trajectory.stop_reason == FAILED:
        return Response("failed")
    response = _read_response(trajectory, outcome.method)
    steps = [step for chain in response.chains for step in chain.steps]
    kind = groups.kind_of(steps, trajectory.answer, bool(outcome.exact_match))
    return response if kind == "chain" else replace(response, kind=kind, chains=())


def _read_response(trajectory: Trajectory, method: str) -> Response:
    if reasoning := [step for step in trajectory.steps if step.kind != "Final Answer"]:
        texts, numbers = tuple(s.text for s in reasoning), tuple(s.number for s in reasoning)
        concluding = groups.claimless_steps((step.text, step.kind) for step in reasoning)
        return Response("chain", (grounds.Chain(texts, trajectory.answer, numbers, concluding),))
    if method == "direct":  # whose prompt requests no reasoning
        return Response("unstructured")
    if answers := sg_fsm_safe.sub_answers(trajectory.attempts):
        steps = tuple(sg_fsm_safe.step_of(sub_answer, number).text for number, sub_answer in enumerate(answers, 1))
        return Response("chain", (grounds.Chain(steps, trajectory.answer),))
    if any(attempt.state == react.ACT for attempt in trajectory.attempts):
        thoughts = (_read_field(attempt, "thought") for attempt in trajectory.attempts)
        steps = tuple(text for thought in thoughts for text in split_sentences(thought))
        return Response("chain", (grounds.Chain(steps, trajectory.answer),))
    return _read_samples(trajectory)


def _read_samples(trajectory: Trajectory) -> Response:
    samples = [(n, attempt) for n, attempt in enumerate(trajectory.attempts, 1) if attempt.state == ANSWERING]
    strict = [(n, a) for n, a in samples if isinstance(a.read, dict) and a.read.get("form") == "strict"]
    readable = [(n, attempt) for n, attempt in strict if _read_field(attempt, "answer")]
    if not readable:
        return Response("unstructured")
    answers = [_read_field(attempt, "answer") for _, attempt in readable]
    steps = [tuple(split_sentences(_read_explanation(attempt))) for _, attempt in readable]
    chains = tuple(grounds.Chain(*chain) for chain in zip(steps, answers, strict=True))
    numbers = tuple(number for number, _ in readable) if len(samples) > 1 else ()
    return Response("chain", chains, numbers, answers.index(vote(answers)))


def _read_field(attempt: Attempt, name: str) -> str:
    value = attempt.read.get("value") if isinstance(attempt.read, dict) else None
    text = value.get(name, "") if isinstance(value, dict) else ""
    return text if isinstance(text, str) else ""


def _read_explanation(attempt: Attempt) -> str:
    """Return the explanation with its line breaks; the attempt keeps only its beginning, on one line."""
    excerpt = _read_field(attempt, "explain")
    try:
        texts = [str(text["explain"]) for text in read_reply(attempt.text).answers("explain")]
    except ValueError:
        return excerpt
    beginning = excerpt.removesuffix("…")
    return next((text for text in texts if " ".join(text.split()).startswith(beginning)), excerpt)


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of an explanation as steps, without list marks and without the conclusion."""
    for line in text[:MAX_EXPLANATION_CHARS].splitlines():
        for piece in sentencex.segment("en", _NUMBER.sub("", _BULLET.sub("", line.replace("**", "")))):
            sentence = _NUMBER.sub("", " ".join(piece.split()))
            is_claim = re.search(r"\w", sentence) and not groups.concludes(sentence)
            if is_claim and not read_step(sentence).announces:
                yield sentence
