"""Converts questions, passages and labels to rows of Parquet and JSON files, and rows back to these.

A ``*_row`` function makes the columns of a row; a ``*_of`` function reads them, and raises ``KeyError`` for a missing
column.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from safe_stepwise.records import NOISE_TYPES, Label, Passage, Question, identity
from safe_stepwise.store.boundary import plain, read

T = TypeVar("T")
Row = dict[str, Any]
Content = Mapping[str, Any]


def passage_of(content: Content) -> Passage:
    """Read a passage with ``sentences`` or an unsplit ``text``; it is gold only if its ``is_gold`` is true.

    >>> passage_of({"title": "Oru", "text": "Oru is a town."}).sentences
    ('Oru is a town.',)
    """
    return read(Passage, _as_sentences(content), "the passage")


def class_of(content: Content, column: str, classes: Sequence[T]) -> T:
    """Return the class whose number a column holds; raises ``ValueError`` for a number outside ``classes``."""
    number = content[column]
    if not isinstance(number, int) or not 0 <= number < len(classes):
        raise ValueError(f"its {column} is missing or unknown")
    return classes[number]


def passages_digest(passages: Iterable[Passage]) -> str:
    """Return the SHA-256 of passages' titles and texts; their order counts, as steps cite passages by number."""
    return identity([[page.title, page.text] for page in passages])


def question_of(content: Content, **extra: str) -> Question:
    """Read the question of a row with at least its columns; raises ``ValueError`` for a row with a different schema.

    ``extra`` has the fields without a column: a published row has neither ``benchmark`` nor ``split``.

    >>> question = Question("q1", "synthetic", "train", "Where?", "Oru", ("Oru town",))
    >>> question_of(question_row(question), benchmark="synthetic", split="train") == question
    True
    """
    columns = {"paths": (), **content, **extra}
    row = {field.name: columns[field.name] for field in fields(Question)}
    return read(Question, {**row, "passages": [*map(_as_sentences, row["passages"])]}, "the question")


def _as_sentences(passage: Content) -> Content:
    """Return a passage with ``sentences``; an unsplit ``text`` becomes its only sentence."""
    return passage if "sentences" in passage else {**passage, "sentences": [passage["text"]]}


_TRIPLE = ("head", "relation", "tail")


def question_row(question: Question) -> Row:
    """Make a question's columns, as in its benchmark's config: no ``paths``, no passage numbers of ``evidence``."""
    row = {name: value for name, value in plain(question).items() if name not in ("benchmark", "split", "paths")}
    return {**row, "evidence": _columns(question.evidence, *_TRIPLE)}


def label_row(label: Label) -> Row:
    """Make a label's columns; ``noise_type`` is the number that `ClassLabel` stores."""
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
    """Read the label of a row; raises ``ValueError`` for a row with a different schema."""
    noise_type = class_of(content, "noise_type", NOISE_TYPES)
    return read(Label, {"confidence": None, **content, "noise_type": noise_type}, "the label")


def _columns(records: Iterable[object], *names: str) -> list[Row]:
    return [{name: getattr(noun, name) for name in names} for noun in records]
