"""What a generator can learn from the set: a right step beside a wrong one, or steps one by one.

The prompt is that by which the loop asks a generator for a step, without remarks. Rejected is the
step of a row with an error; chosen beside it is what the set's ideal trajectories say there: after
the same steps, beside the same passages. The rows of KTO are all rows of the set.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from builders.steps.questions import question_key
from builders.steps.rows import StepRow
from safe_stepwise.methods.generator import generator_request
from safe_stepwise.methods.prompt_sets import PAPER, PromptSet
from safe_stepwise.steps import format_step, successions
from safe_stepwise.store.codec import passages_digest
from safe_stepwise.taxonomy import CORRECT

Place = tuple[str, str, tuple[str, ...]]
"""A question, what its passages say, and the steps accepted so far."""
Right = Mapping[Place, str]
"""The step to take at a place."""


def right_steps(rows: Iterable[StepRow]) -> dict[Place, str]:
    """What the ideal trajectories of some rows say, wherever these tell it.

    Of a refined row that is its own step alone: those before it are what some verifier let pass.
    """
    found: dict[Place, str] = {}
    for row in rows:
        asked, pages, previous = _place(row)
        current = format_step(row.step) if _is_right(row) else None
        for before, step in successions(previous, current):
            if row.origin != "refined" or before == previous:
                found[asked, pages, before] = step
    return found


def rejected(rows: Iterable[StepRow], right: Right) -> list[StepRow]:
    """The rows with an error at whose place it is known what is right."""
    return [row for row in rows if not _is_right(row) and _place(row) in right]


def preference_row(row: StepRow, right: Right, prompt_set: PromptSet = PAPER) -> dict[str, Any]:
    """A `rejected` row in TRL's conversational form of preferences, by the row's own id."""
    return {
        "id": row.id,
        "prompt": _prompt(row, prompt_set),
        "chosen": _said(right[_place(row)]),
        "rejected": _said(format_step(row.step)),
    }


def kto_row(row: StepRow, prompt_set: PromptSet = PAPER) -> dict[str, Any]:
    """Any row in TRL's form of unpaired preferences: good or bad, by the row's own id."""
    said = _said(format_step(row.step))
    prompt = _prompt(row, prompt_set)
    return {"id": row.id, "prompt": prompt, "completion": said, "label": _is_right(row)}


def counts(parts: Mapping[str, Sequence[StepRow]]) -> dict[str, dict[str, int]]:
    """By split, how many rows either form has; ``unpaired`` are errors with nothing beside them."""
    return {split: _counts(rows) for split, rows in parts.items()}


def question_of(row: StepRow) -> str:
    """The key of a row's question."""
    return question_key(row.question.benchmark, row.question.id)


def _counts(rows: Sequence[StepRow]) -> dict[str, int]:
    labels, pairs = Counter(map(_is_right, rows)), len(rejected(rows, right_steps(rows)))
    told = {"desirable": labels[True], "undesirable": labels[False]}
    return {"pairs": pairs, "unpaired": labels[False] - pairs, **told}


def _is_right(row: StepRow) -> bool:
    return row.feedback.error_type == CORRECT


def _place(row: StepRow) -> Place:
    previous = tuple(map(format_step, row.previous))
    return question_of(row), passages_digest(row.question.passages), previous


def _prompt(row: StepRow, prompt_set: PromptSet) -> list[dict[str, str]]:
    asked = row.question.question, row.question.passages, row.previous
    request = generator_request(*asked, prompt_set=prompt_set)
    return [{"role": turn.role, "content": turn.content} for turn in request.messages]


def _said(step: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": step}]
