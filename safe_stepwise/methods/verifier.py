"""Renders the request for a verdict on one step, alike for training rows and in the loop.

What never changes comes first, so that an engine's prefix cache holds it: instructions and taxonomy, then a question's
passages, the question, the accepted steps, and the current step in the place that it keeps when it is accepted.
"""

import functools
import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from safe_stepwise import prompts
from safe_stepwise.engines.base import Message, Pair, Request, Schema
from safe_stepwise.feedback import feedback_schema, format_feedback
from safe_stepwise.methods.prompt_sets import PAPER, PromptSet
from safe_stepwise.methods.scene import Scene
from safe_stepwise.records import Feedback, Passage, Question, Step, StepKind
from safe_stepwise.steps import final_answer, format_step
from safe_stepwise.taxonomy import CORRECT, STEP_KINDS, TAXONOMY, Category, labels

ROLE = "verify"
GUIDANCE = "Write this step again, and say only what a passage or an earlier step states."
"""The guidance of verifiers that write no words of their own."""


def verifier_request(
    question: str,
    passages: Sequence[Passage],
    previous: Sequence[Step],
    step: Step | str,
    incomplete_evidence: bool = False,
    dropped: Category | None = None,
    prompt_set: PromptSet = PAPER,
) -> Request:
    """Render the greedy request for a verdict (SAFE v1, section 3.4), with the schema of `feedback`.

    ``passages`` are numbered from 1 in the given order. A ``step`` that a model wrote and nobody could parse goes in
    as text. ``incomplete_evidence`` adds the twelfth label and its query; no label of a ``dropped`` category is told
    of (SAFE v2, Table 4). ``prompt_set`` says in how many words it is asked, and what the verdict begins with.

    Raises StepError for a ``Step`` that is not valid.

    >>> oru = Passage("Oru", ("Oru lies on the Vel.",))
    >>> step = Step(1, "According to Passage 1, Oru lies on the Vel.", "Attribution")
    >>> print(verifier_request("On what does Oru lie?", [oru], [], step).messages[1].content)
    Passages:
    Passage 1 ("Oru"): "Oru lies on the Vel."
    <BLANKLINE>
    Question: "On what does Oru lie?"
    <BLANKLINE>
    Steps, the last of them the current step:
    "Step 1: According to Passage 1, Oru lies on the Vel. (Attribution)"
    <BLANKLINE>
    Judge the current step.
    """
    prompt = prompts.load(prompt_set.verify)
    user_turn = prompt.render_user(
        question=question,
        passages=passages,
        previous=[format_step(accepted) for accepted in previous],
        step=step if isinstance(step, str) else format_step(step),
    )
    setting = (incomplete_evidence, dropped, prompt_set)
    turns = (Message("system", instructions(*setting)), Message("user", user_turn))
    return Request(turns, prompt.sampling, _schema(*setting), prompt.role)


def request_verdict(
    question: Question,
    previous: Sequence[Step],
    step: Step,
    *setting: Any,
    searches: frozenset[int] = frozenset(),
    scored: bool = False,
) -> Request:
    """Render `verifier_request` about a question, with what players and models of entailment read instead.

    ``scored``: ask for the probability of *Correct*, too.
    """
    request = verifier_request(question.question, question.passages, previous, step, *setting)
    scene = Scene(question, previous=tuple(previous), step=step, searches=searches)
    premise = "\n".join([render_premise(question.passages), *(accepted.text for accepted in previous)])
    pair = Pair(premise, _hypothesis(question.question, step), *_entailed_replies(step.kind))
    others = (label for label in labels(*setting[:2]) if label != CORRECT)
    return replace(request, scene=scene, pair=pair, labels=(CORRECT, *others) if scored else ())


def render_premise(passages: Sequence[Passage]) -> str:
    """Write passages as the premise of a question of entailment, one a line."""
    return "\n".join(f"{page.title}: {page.text}" if page.title else page.text for page in passages)


def _hypothesis(question: str, step: Step) -> str:
    """Return what a step says as a sentence."""
    return f"The answer to “{question}” is “{final_answer(step)}”." if step.kind == "Final Answer" else step.text


@functools.cache
def _entailed_replies(kind: StepKind) -> tuple[str, str, str]:
    """Return the verdicts on a step that is stated, denied, or neither; an answer that is neither passes."""
    denied, absent = {
        "Final Answer": ("Wrong Conclusion", CORRECT),
        "Logical": ("Logical Fallacy", "Logical Fallacy"),
        "Attribution": ("Contradictory", "Unsupported"),
    }[kind]
    reasons = {denied: "A passage or an earlier step says otherwise.", absent: "Nothing states it."}
    return (
        format_feedback(Feedback(CORRECT, "A passage or an earlier step states it.", "")),
        format_feedback(Feedback(denied, reasons[denied], GUIDANCE)),
        format_feedback(Feedback(absent, reasons[absent], GUIDANCE)),
    )


@functools.cache
def instructions(
    incomplete_evidence: bool = False, dropped: Category | None = None, prompt_set: PromptSet = PAPER
) -> str:
    """Render the system turn: the verifier's role, the order of checks, the meaning of each label.

    The compact one names no label and no key: they are in the schema, what they mean is learnt.
    """
    sections = [prompts.load(prompt_set.instruct).system]
    allowed = labels(incomplete_evidence, dropped)
    if prompt_set.name != "compact":
        sections += ["", "Labels, in the order of checks:"]
        ordered = sorted((e for e in TAXONOMY if e.name in allowed), key=lambda e: e.name == CORRECT)
        for kinds, entries in itertools.groupby(ordered, key=lambda entry: entry.step_kinds):
            sections.append(f"{'Any' if kinds == STEP_KINDS else ' or '.join(kinds)}:")
            sections += [f"- {entry.name}: {entry.definition}" for entry in entries]
        sections.append("")
    if incomplete_evidence:
        sections.append("With the label Missing Evidence, and only then, add query: what to search for.")
    if prompt_set.name != "compact":
        keys = feedback_schema(incomplete_evidence, dropped, prompt_set.verdict_order)["properties"]
        sections.append(f"Reply with JSON alone: {json.dumps(dict.fromkeys(keys, '...'))}")
    return "\n".join(sections)


def prompt_digest(
    incomplete_evidence: bool = False, dropped: Category | None = None, prompt_set: PromptSet = PAPER
) -> str:
    """Return the SHA-256 (64 hex digits) of a request's constant text: prompt file, taxonomy, schema."""
    setting = (incomplete_evidence, dropped, prompt_set)
    fixed = [*(prompts.load(name).digest for name in prompt_set.verifying), instructions(*setting)]
    fixed.append(_schema(*setting).text)
    return hashlib.sha256("\0".join(fixed).encode()).hexdigest()


@functools.cache
def _schema(incomplete_evidence: bool, dropped: Category | None, prompt_set: PromptSet) -> Schema:
    return Schema.from_dict("feedback", feedback_schema(incomplete_evidence, dropped, prompt_set.verdict_order))
