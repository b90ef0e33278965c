"""Renders the request for a verdict on one step, alike for training rows and in the loop.

What never changes comes first, so that an engine's prefix cache holds it: instructions and taxonomy, then a question's
passages, the question, the accepted steps, and the current step in the place that it keeps when it is accepted. If
passages are chosen for each step (`passage_choice`), each stands before the first step that calls for it.
"""

import functools
import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import replace

from safe_stepwise import prompts
from safe_stepwise.engines.base import Completion, Message, Pair, Request, Schema
from safe_stepwise.feedback import FeedbackError, feedback_schema, format_feedback, parse_feedback
from safe_stepwise.methods import passage_choice
from safe_stepwise.methods.prompt_sets import ALL, PAPER, PromptSet
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
    of (SAFE v2, Table 4). ``prompt_set`` says in how many words it is asked, what the verdict begins with, and which
    passages are quoted.

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
    prompt, texts = prompts.load(prompt_set.verify), _texts_of(previous, step)
    if (turns := _turns(passages, texts, prompt_set)) is None:
        chosen = {"passages": passages, "previous": texts[:-1], "step": texts[-1]}
    else:
        pages = ([(n, passages[n - 1]) for n in turn] for turn in turns)
        left_out = passage_choice.name_left_out(len(passages), turns)
        chosen = {"turns": list(zip(pages, texts, strict=True)), "left_out": left_out}
    user_turn = prompt.render_user(question=question, **chosen)
    setting = (incomplete_evidence, dropped, prompt_set)
    messages = (Message("system", instructions(*setting)), Message("user", user_turn))
    return Request(messages, prompt.sampling, _schema(*setting), prompt.role)


def _texts_of(previous: Sequence[Step], step: Step | str) -> list[str]:
    return [*map(format_step, previous), step if isinstance(step, str) else format_step(step)]


def _turns(
    passages: Sequence[Passage], steps: Sequence[str], prompt_set: PromptSet
) -> tuple[passage_choice.Numbers, ...] | None:
    """Return the passages to quote before each step (None: all first); compact prompts quote the last step's."""
    if (choice := prompt_set.verifier_evidence) == ALL:
        return None
    if prompt_set.name != "compact":
        return passage_choice.choose_passages(passages, steps, choice)
    last = passage_choice.called_for(tuple(passages), steps[-1], choice, len(steps) == 1)
    return (*[()] * (len(steps) - 1), last)


def request_verdict(
    question: Question,
    previous: Sequence[Step],
    step: Step,
    incomplete_evidence: bool = False,
    dropped: Category | None = None,
    prompt_set: PromptSet = PAPER,
    *,
    searches: frozenset[int] = frozenset(),
    scored: bool = False,
) -> Request:
    """Render `verifier_request` with scene and entailment pair; ``scored`` asks for *Correct*'s probability."""
    setting = (incomplete_evidence, dropped, prompt_set)
    request = verifier_request(question.question, question.passages, previous, step, *setting)
    turns = _turns(question.passages, _texts_of(previous, step), prompt_set)
    numbers = None if turns is None else tuple(sorted(itertools.chain(*turns)))
    scene = Scene(question, previous=tuple(previous), step=step, searches=searches, numbers=numbers)
    premise = "\n".join([render_premise(scene.prompt_passages), *(accepted.text for accepted in previous)])
    is_answer = step.kind == "Final Answer"
    hypothesis = f"The answer to “{question.question}” is “{final_answer(step)}”." if is_answer else step.text
    pair = Pair(premise, hypothesis, *_entailed_replies(step.kind))
    other_labels = (label for label in labels(incomplete_evidence, dropped) if label != CORRECT)
    return replace(request, scene=scene, pair=pair, labels=(CORRECT, *other_labels) if scored else ())


def read_label(request: Request, reply: Completion) -> str:
    """Return a reply's label; "" if none can be read, or is allowed, or it only stands in the quoted texts."""
    try:
        label = parse_feedback(reply.text, incomplete_evidence=True, data=prompts.data_of(request)).error_type
    except FeedbackError:
        return ""
    schema = json.loads(request.schema.text) if request.schema else {}
    allowed = schema.get("properties", {}).get("error_type", {}).get("enum", (label,))
    return label if label in allowed else ""


def render_premise(passages: Sequence[Passage]) -> str:
    """Write passages as the premise of a question of entailment, one a line."""
    return "\n".join(f"{page.title}: {page.text}" if page.title else page.text for page in passages)


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
    """Render the system turn: role, order of checks, labels; compact prompts leave labels and keys to the schema."""
    sections = [prompts.load(prompt_set.instruct).system]
    if prompt_set.verifier_evidence != ALL:
        sections.append(prompts.load(prompt_set.verify).system)
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
    if prompt_set.verifier_evidence != ALL:
        fixed.append(passage_choice.describe(prompt_set.verifier_evidence))
    return hashlib.sha256("\0".join(fixed).encode()).hexdigest()


@functools.cache
def _schema(incomplete_evidence: bool, dropped: Category | None, prompt_set: PromptSet) -> Schema:
    return Schema.from_dict("feedback", feedback_schema(incomplete_evidence, dropped, prompt_set.verdict_order))
