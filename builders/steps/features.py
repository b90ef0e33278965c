"""The columns of the step-level verifier set (DESIGN section 6), and the way from rows to them."""

from typing import Any

from builders.steps.rows import StepRow
from safe_stepwise.feedback import format_feedback
from safe_stepwise.methods.prompt_sets import PAPER, PromptSet
from safe_stepwise.methods.quoting import with_evidence
from safe_stepwise.methods.verifier import verifier_request
from safe_stepwise.records import EVIDENCE_FIRST
from safe_stepwise.steps import format_step
from safe_stepwise.store.names import (
    CONTEXTS,
    IDEAL,
    KTO,
    MISSING,
    MISSING_PROMPT_COMPLETION,
    MISSING_TWINS,
    ORIGINS,
    PREFERENCE,
    PROMPT_COMPLETION,
    REFINED,
    SEEN,
    STEPS,
    WORDINGS,
    Wording,
)
from safe_stepwise.taxonomy import CATEGORIES, CORRECT, MISSING_EVIDENCE, category, labels

CONFIGS = (*(STEPS, PROMPT_COMPLETION, PREFERENCE, KTO), *(MISSING, MISSING_TWINS, MISSING_PROMPT_COMPLETION))
TWELVE_LABELS = (MISSING, MISSING_TWINS, MISSING_PROMPT_COMPLETION)
"""Configs of the incomplete-evidence setting."""

Row = dict[str, Any]


def config_features(config: str) -> Any:
    """The `datasets.Features` of a config; of `TWELVE_LABELS` with the twelfth label.

    All but those with a row a step are in TRL's conversational forms, with the row's id.
    """
    from datasets import Features, List, Value

    if config in (STEPS, MISSING, MISSING_TWINS):
        return step_features(config in TWELVE_LABELS)
    turns = List({"role": Value("string"), "content": Value("string")})
    asked = {"id": Value("string"), "prompt": turns}
    if config == PREFERENCE:
        return Features({**asked, "chosen": turns, "rejected": turns})
    label = {"label": Value("bool")} if config == KTO else {}
    return Features({**asked, "completion": turns, **label})


def step_features(incomplete_evidence: bool = False) -> Any:
    """The `datasets.Features` of a step row."""
    from datasets import ClassLabel, Features, List, Value

    text = Value("string")
    return Features(
        {
            "id": text,
            "benchmark": text,
            "question_id": text,
            "question": text,
            "passages": List({"title": text, "text": text}),
            "previous_steps": List(text),
            "current_step": text,
            "step_kind": text,
            "error_type": ClassLabel(names=list(labels(incomplete_evidence))),
            "error_category": ClassLabel(names=list(categories(incomplete_evidence))),
            "diagnosis": text,
            "guidance": text,
            "query": text,
            "origin": ClassLabel(names=list(ORIGINS)),
            "position": Value("int32"),
            "teacher": text,
            "wording": ClassLabel(names=list(WORDINGS)),
            "context": ClassLabel(names=list(CONTEXTS)),
        }
    )


def categories(incomplete_evidence: bool = False) -> tuple[str, ...]:
    """The categories of a setting's labels, in the taxonomy's order.

    >>> categories()
    ('Procedural', 'Attribution', 'Logical', 'Final Answer', 'Correct')
    """
    return tuple(c for c in CATEGORIES if incomplete_evidence or c != MISSING_EVIDENCE)


def step_row(row: StepRow, incomplete_evidence: bool = False, wording: Wording = SEEN) -> Row:
    """The columns of one row; class labels as the numbers that `ClassLabel` stores.

    ``wording`` is for rows of test: ``unseen`` if no row of train has their step's skeleton.

    Raises ValueError for a row that `check_row` refuses.
    """
    question, feedback = row.question, row.feedback
    return {
        "id": row.id,
        "benchmark": question.benchmark,
        "question_id": question.id,
        "question": question.question,
        "passages": [{"title": p.title, "text": p.text} for p in question.passages],
        "previous_steps": [format_step(step) for step in row.previous],
        "current_step": format_step(row.step),
        "step_kind": row.step.kind,
        "error_type": labels(incomplete_evidence).index(feedback.error_type),
        "error_category": categories(incomplete_evidence).index(category(feedback.error_type)),
        "diagnosis": feedback.diagnosis,
        "guidance": feedback.guidance,
        "query": feedback.query,
        "origin": ORIGINS.index(row.origin),
        "position": row.step.number,
        "teacher": row.teacher,
        "wording": WORDINGS.index(wording),
        "context": CONTEXTS.index(row.context),
    }


def prompt_completion_row(row: StepRow, incomplete_evidence: bool = False, prompt_set: PromptSet = PAPER) -> Row:
    """The row as the loop would ask it in a setting, and the reply that it should get.

    The reply begins with what the ``prompt_set`` says.
    """
    asked = (row.question.question, row.question.passages, row.previous, row.step)
    request = verifier_request(*asked, incomplete_evidence, prompt_set=prompt_set)
    order, said = prompt_set.verdict_order, row.feedback
    if order == EVIDENCE_FIRST:
        said = with_evidence(said, *asked)
    return {
        "id": row.id,
        "prompt": [{"role": turn.role, "content": turn.content} for turn in request.messages],
        "completion": [{"role": "assistant", "content": format_feedback(said, order)}],
    }


def check_row(row: StepRow) -> None:
    """Raise ValueError, in one line, for a row that is in no published shape.

    Steps have to be valid and count on from 1; the label has to be of the taxonomy, and ``Correct``
    exactly when the row is ideal (a refined one may be either).
    """
    format_feedback(row.feedback)
    for step in (*row.previous, row.step):
        format_step(step)
    numbers = [step.number for step in (*row.previous, row.step)]
    if numbers != list(range(1, len(numbers) + 1)):
        raise ValueError(f"steps are numbered {numbers}")
    label = row.feedback.error_type
    if row.origin != REFINED and (row.origin == IDEAL) != (label == CORRECT):
        raise ValueError(f"origin {row.origin} with the label {label}")
