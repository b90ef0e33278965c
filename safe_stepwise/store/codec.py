"""Converts questions, passages and labels to rows of Parquet and JSON files, and rows back to these.

A ``*_row`` function makes the columns of a row, a ``*_of`` function reads them; it raises ``KeyError`` for a missing
column.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from safe_stepwise.records import NOISE_TYPES, Label, Passage, Question, identity
from safe_stepwise.store.boundary import read

T = TypeVar("T")
Row = dict[str, Any]
Content = Mapping[str, Any]


def passage_of(content: Content) -> Passage:
    """Read a passage with ``sentences`` or an unsplit ``text``; it is gold only if its ``is_gold`` is true.

    >>> passage_of({"title": "Oru", "text": "Oru is a town."}).sentences
    ('Oru is a town.',)
    """
    return read(Passage, _split(content), "the passage")


def class_of(content: Content, column: str, classes: Sequence[T]) -> T:
    """Return the class whose number a column holds; raises ``ValueError`` for the number of none of ``classes``."""
    number = content[column]
    if not isinstance(number, int) or not 0 <= number < len(classes):
        raise ValueError(f"its {column} is missing or unknown")
    return classes[number]


def passages_digest(passages: Iterable[Passage]) -> str:
    """Return the SHA-256 of passages' titles and texts; their order counts, as steps cite passages by number."""
    return identity([[page.title, page.text] for page in passages])


def question_of(content: Content, **extra: str) -> Question:
    """Read the question of a row, which may have more columns; raises ``ValueError`` for a row of another form.

    ``extra`` are the fields that have no column: a published row has neither ``benchmark`` nor ``split``.

    >>> question = Question("q1", "synthetic", "train", "Where?", "Oru", ("Oru town",))
    >>> question_of(question_row(question), benchmark="synthetic", split="train") == question
    True
    """
    columns = {**content, **extra}
    row = {field.name: columns[field.name] for field in fields(Question)}
    return read(Question, {**row, "passages": [*map(_split, row["passages"])]}, "the question")


def _split(passage: Content) -> Content:
    return passage if "sentences" in passage else {**passage, "sentences": [passage["text"]]}


_TRIPLE = ("head", "relation", "tail")


def question_row(question: Question) -> Row:
    """Make a question's columns, as in the config of its benchmark; passage numbers of ``evidence`` are left out."""
    return {
        "id": question.id,
        "question": question.question,
        "answer": question.answer,
        "aliases": list(question.aliases),
        "kind": question.kind,
        "hops": question.hops,
        "passages": [
            {"title": p.title, "sentences": list(p.sentences), "is_gold": p.is_gold} for p in question.passages
        ],
        "supporting_facts": _columns(question.supporting_facts, "title", "sentence"),
        "evidence": _columns(question.evidence, *_TRIPLE),
        "decomposition": _columns(question.decomposition, "question", "answer", "passage"),
    }


def label_row(label: Label) -> Row:
    """Make a label's columns; ``noise_type`` is the number that `ClassLabel` stores.

    >>> label_row(Label("missing_evidence", "No sentence names it.", (), (), "t"))["noise_type"]
    1
    """
    return {
        "unverifiable": label.unverifiable,
        "noise_type": NOISE_TYPES.index(label.noise_type),
        "confidence": label.confidence,
        "explanation": label.explanation,
        "reasoning_path": _columns(label.reasoning_path, *_TRIPLE, "passage"),
        "knowledge_graph": _columns(label.knowledge_graph, *_TRIPLE, "passage", "sentence"),
        "teacher": label.teacher,
    }


def label_of(content: Content) -> Label:
    """Read the label of a row; raises ``ValueError`` for a row of another form.

    >>> label = Label("none", "It does.", (), (), "t", 0.5)
    >>> label_of(label_row(label)) == label
    True
    """
    noise_type = class_of(content, "noise_type", NOISE_TYPES)
    return read(Label, {"confidence": None, **content, "noise_type": noise_type}, "the label")


def _columns(nouns: Iterable[object], *names: str) -> list[Row]:
    return [{name: getattr(noun, name) for name in names} for noun in nouns]
