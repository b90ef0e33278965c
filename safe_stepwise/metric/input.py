"""Reads the columns of the metric's input by their types; one error names all values of another form."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from safe_stepwise.errors import RowError, UserError, at_place
from safe_stepwise.records import Passage, Question, canonical_json, identity
from safe_stepwise.scoring import exact_match
from safe_stepwise.store import boundary, codec, sizes

_KINDS: Mapping[str, Any] = {
    **dict.fromkeys(("predictions", "answers"), list[str | None]),
    "questions": list[str],
    **dict.fromkeys(("references", "steps"), list[list[str]]),
    "evidence": list[list[tuple[str, str, str]]],
    "passages": list[list[Any]],
}
"""The types of the columns, as JSON values."""
_OPTIONAL = ("steps", "evidence")
"""Columns whose entries may be empty."""
_TRIPLE = ("head", "relation", "tail")


def read_column(column: Any, name: str) -> list[Any]:
    """Return the column ``name`` as lists of texts; an answer that is None becomes an empty one.

    Triples of ``evidence`` may be mappings; passages are read by `plain_passage`. Raises ``UserError`` for values of
    another form, half surrogate pairs, an empty column, a chain of too many steps, and a question without accepted
    answers or passages.

    >>> read_column([[("Oru", "country", "Marn")], []], "evidence")
    [[['Oru', 'country', 'Marn']], []]
    """
    values = ["" if value is None else value for value in _as_lists(_read(_KINDS[name], column, name))]
    _require_entries(values, name)
    for number, entry in enumerate(values):
        place = f"{name}[{number}]"
        if isinstance(entry, list) and name not in _OPTIONAL:
            _require_entries(entry, place)
        if name == "steps":
            with at_place(place, RowError):
                sizes.check_steps(entry)
        if name == "passages":
            values[number] = [plain_passage(page, f"{place}[{n}]") for n, page in enumerate(entry)]
    if name != "passages":
        check_letters(values, name)
    return values


def _read(kind: Any, value: Any, place: str) -> Any:
    try:
        return boundary.read(kind, _as_lists(value), place)
    except ValueError as error:
        raise UserError(str(error)) from None


def _as_lists(value: Any) -> Any:
    """Convert a value's tuples, arrays and other iterables to lists, and its triples from mappings."""
    if isinstance(value, Mapping) and set(_TRIPLE) <= set(value):
        value = [value[name] for name in _TRIPLE]
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        return [*map(_as_lists, value)]
    return value


def _require_entries(values: Sequence[Any], place: str) -> None:
    if not values:
        raise UserError(f"there are no {place}: give at least one")


def check_letters(value: Any, place: str) -> None:
    """Raise ``UserError`` with the place of a text, or of one in nested lists, that holds half of a surrogate pair."""
    if not isinstance(value, str):
        for number, item in enumerate(value):
            check_letters(item, f"{place}[{number}]")
    elif not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        mend = "text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')"
        raise UserError(f"{place} holds half of a surrogate pair: {_short(value)}; mend it by {mend}")


def check_lengths(**columns: Sequence[Any]) -> None:
    """Raise ``UserError`` if columns, given by name, differ in length.

    >>> check_lengths(predictions=["Oru"], references=[])
    Traceback (most recent call last):
    safe_stepwise.errors.UserError: 1 predictions but 0 references: give as many of each
    """
    (first, size), *lengths = ((name, len(column)) for name, column in columns.items())
    for name, length in lengths:
        if length != size:
            raise UserError(f"{size} {first} but {length} {name}: give as many of each")


def plain_passage(value: Any, place: str) -> dict[str, Any]:
    """Return a passage as ``title`` and ``sentences``; raises ``UserError`` for a value that is no passage.

    A passage is a string, a mapping with title and text or sentences, or HotpotQA's pair of title and sentences.

    >>> plain_passage("Oru lies on the Vel.", "passages[0][0]")
    {'title': '', 'sentences': ['Oru lies on the Vel.']}
    >>> plain_passage(["Oru", ["Oru lies on the Vel."]], "passages[0][0]")
    {'title': 'Oru', 'sentences': ['Oru lies on the Vel.']}
    """
    if isinstance(value, Passage):
        return {"title": value.title, "sentences": list(value.sentences)}
    if isinstance(value, str):
        value = {"text": value}
    if isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[0], str):
        value = {"title": value[0], "sentences": value[1]}
    if not isinstance(value, Mapping) or not ({"text", "sentences"} & set(value)):
        forms = "a string, or a mapping with title and text (or a pair of title and sentences)"
        raise UserError(f"{place} is {_short(value)}: give {forms}")
    text, sentences = value.get("text"), value.get("sentences")
    if isinstance(text, str) and isinstance(sentences, list) and text.split() != " ".join(map(str, sentences)).split():
        raise UserError(f"{place} has a text and sentences that differ: give one of them")
    content = text if sentences is None else sentences
    page: dict[str, Any] = {
        "title": _read(str, value.get("title") or "", f"{place} title"),
        "sentences": _read(list[str], [content] if isinstance(content, str) else content, f"{place} sentences"),
    }
    _require_entries(page["sentences"], f"{place} sentences")
    for name, texts in page.items():
        check_letters(texts, f"{place} {name}")
    return page


def checked_columns(columns: Mapping[str, Any], names: Sequence[str]) -> dict[str, list[Any]]:
    """Check that ``columns`` are exactly those of ``names``, and return them as lists of JSON values.

    A column that is None counts as missing. Raises ``UserError`` for a missing, unknown or invalid column.
    """
    present = {name: column for name, column in columns.items() if column is not None}
    if present.keys() != set(names):
        raise UserError(f"given {', '.join(sorted(present))}: give {', '.join(names)}")
    checked = {name: read_column(column, name) for name, column in present.items()}
    check_lengths(**checked)
    return checked


def loop_questions(
    questions: Sequence[Any], passages: Sequence[Any] | None, references: Sequence[Any] | None, benchmark: str | None
) -> list[Question]:
    """Make the loop's questions from columns (with the SHA-256 of their content as id), or from `Question` objects."""
    items = [] if isinstance(questions, str) else list(questions)
    if items and all(isinstance(question, Question) for question in items):
        if passages is not None or references is not None:
            raise UserError("Question objects bring passages and references: leave those out")
        rows = [replace(q, benchmark=benchmark or q.benchmark) for q in items]
    else:
        texts = read_column(questions, "questions")
        if passages is None or references is None:
            raise UserError("the loop needs passages and references beside the questions")
        pages, accepted = read_column(passages, "passages"), read_column(references, "references")
        check_lengths(questions=texts, passages=pages, references=accepted)
        rows = []
        for text, content, names in zip(texts, pages, accepted, strict=True):
            row = Question(
                identity([text, canonical_json(content), names]), benchmark or "hotpotqa", "", text, names[0]
            )
            rows.append(replace(row, aliases=tuple(names[1:]), passages=tuple(map(codec.passage_of, content))))
    for question in rows:
        exact_match("", question.accepted, question.benchmark)  # raises for an unknown benchmark
    return rows


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:59] + "…"
