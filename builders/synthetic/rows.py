"""Rows as plain JSON objects, and back."""

from collections.abc import Mapping
from typing import Any

from builders.synthetic.world import NAME
from builders.work import fields
from safe_stepwise.errors import RowError
from safe_stepwise.records import NoiseType, Question, canonical_json
from safe_stepwise.store import boundary
from safe_stepwise.store.codec import question_row

_COLUMNS = tuple(question_row(Question("", "", "", "", "")))


def to_row(question: Question, truth: NoiseType) -> dict[str, Any]:
    """The plain JSON object of a row, truth included; ``parse`` reads it back."""
    return {**question_row(question), "truth": truth}


def parse(row: Mapping[str, Any], split: str) -> Question:
    """The Question of a ``to_row`` object, its truth unread. RowError when a field is unusable.

    >>> from builders.synthetic import Spec, generate
    >>> question, truth = next(generate(Spec(rows=1, seed=3)))
    >>> parse(to_row(question, truth), "validation") == question
    True
    """
    columns = {name: fields.require(row, name) for name in _COLUMNS}
    for name in ("id", "question"):
        fields.filled_text(columns[name], name)
    columns["answer"] = fields.answer(row)
    try:
        question = boundary.read(Question, {**columns, "benchmark": NAME, "split": split}, "the row")
        canonical_json(question).encode()  # no half of a character
    except ValueError as error:
        raise RowError(str(error)) from None
    _check_numbers(question)
    return question


def _check_numbers(question: Question) -> None:
    """Raise RowError for a passage without text, and for a number of a sentence or passage that is not there."""
    if not question.passages:
        raise RowError("no passages")
    for number, page in enumerate(question.passages, 1):
        if not page.text.strip():
            raise RowError(f"passage {number} ({page.title!r}) is empty")
    sentences = {page.title: len(page.sentences) for page in question.passages}
    for fact in question.supporting_facts:
        if not 0 <= fact.sentence < sentences.get(fact.title, 0):
            raise RowError(f"supporting fact {fact.title!r} {fact.sentence}: no such sentence")
    for hop in question.decomposition:
        if hop.passage is None or not 1 <= hop.passage <= len(question.passages):
            raise RowError(f"a hop points at passage {hop.passage}, which is not there")
