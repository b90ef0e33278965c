"""Checks the fields of a raw row, in the same way for every benchmark's ``parse``.

Benchmarks come in several shapes: the original files have lists of lists or of objects; copies on the Hub have one
list per column, or the whole value as a JSON string; `records` reads all of these. Each function raises ``RowError``
for a value of another type or size; ``label`` names the value in its message.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from safe_stepwise.errors import RowError
from safe_stepwise.store import rows
from safe_stepwise.store.sizes import MAX_PASSAGE_CHARS

Reader = Callable[[Any, str], Any]
"""Checks a value and returns it; takes the value and its label in error messages."""
NO_JSON = "not in JSON"
"""The only key of an object that replaces a value that JSON cannot hold; its value is that value's type."""

OTHER_BENCHMARK = "try --benchmark"
"""The advice in the reason of a row that looks like another benchmark's."""
MAX_CHARS = MAX_PASSAGE_CHARS
"""Maximum characters of a text; texts of real rows have up to a sixth of it."""
MAX_ENTRIES = 1_000
"""Maximum entries of a list; lists of real rows have up to 53 (the sentences of a passage)."""


def require(row: Mapping[str, Any], *names: str) -> Any:
    """Return the first of the named fields that is present and not null; raise ``RowError`` if there is none.

    >>> require({"id": "q1"}, "_id", "id")
    'q1'
    """
    for name in names:
        if row.get(name) is not None:
            return row[name]
    raise RowError(f"missing field {' or '.join(map(repr, names))}")


def text(value: Any, label: str) -> str:
    """Return the value unchanged, if it is a string of at most `MAX_CHARS` characters that UTF-8 can encode."""
    if not isinstance(value, str):
        raise RowError(f"{label} is {_word_kind(value)}, expected a string")
    if len(value) > MAX_CHARS:
        raise RowError(f"{label} has {len(value)} characters, at most {MAX_CHARS} are read")
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise RowError(f"{label} holds half a character at position {error.start}") from error
    return value


def filled_text(value: Any, label: str) -> str:
    """Return the value unchanged if it is a `text` that is not blank."""
    checked = text(value, label)
    if not checked.strip():
        raise RowError(f"{label} is empty")
    return checked


def answer(row: Mapping[str, Any]) -> str:
    """Return the row's gold answer; without one, the error names the usual cause, an unlabelled test split."""
    value = row.get("answer")
    if value is None or (isinstance(value, str) and not value.strip()):
        raise RowError("no answer: a test split without answers can't be verified")
    return text(value, "answer")


def integer(value: Any, label: str) -> int:
    """Return the value if it is a whole number, and not true or false."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise RowError(f"{label} is {_word_kind(value)}, expected a whole number")
    return value


def boolean(value: Any, label: str) -> bool:
    """Return the value if it is true or false."""
    if not isinstance(value, bool):
        raise RowError(f"{label} is {_word_kind(value)}, expected true or false")
    return value


def items(value: Any, label: str, limit: int = MAX_ENTRIES) -> Sequence[Any]:
    """Return the value if it is a list of at most ``limit`` entries."""
    if not isinstance(value, list | tuple):
        raise RowError(f"{label} is {_word_kind(value)}, expected a list")
    if len(value) > limit:
        raise RowError(f"{label} has {len(value)} entries, at most {limit} are read")
    return value


def records(value: Any, columns: tuple[str, ...], label: str) -> list[tuple[Any, ...]]:
    """Return the rows of a nested field, each with the values of ``columns`` in order, from any of its shapes.

    >>> shapes = [
    ...     [["Oru", 0], ["Vel", 1]],
    ...     [{"title": "Oru", "sent_id": 0}, {"title": "Vel", "sent_id": 1}],
    ...     {"title": ["Oru", "Vel"], "sent_id": [0, 1]},
    ...     '[["Oru", 0], ["Vel", 1]]',
    ... ]
    >>> [records(shape, ("title", "sent_id"), "supporting_facts") for shape in shapes] == [
    ...     [("Oru", 0), ("Vel", 1)]
    ... ] * 4
    True
    """
    if value is None:
        raise RowError(f"{label} is null, expected a list")
    entries = rows.entries(value)
    return [_read_record(entry, columns, f"{label} {number}") for number, entry in enumerate(items(entries, label), 1)]


def read_rows(value: Any, label: str, noun: str, columns: Mapping[str, Reader], **names: str) -> list[tuple[Any, ...]]:
    """Read the rows of ``value`` (shapes as in `records`) with one reader for each column.

    ``columns`` maps each column to its reader. In error messages, a row is called ``noun`` with its number, and a
    column ``names[column]`` if given, else by its own name.

    >>> read_rows([["Oru", "x"]], "supporting_facts", "fact", {"title": text, "sent_id": integer}, sent_id="sentence")
    Traceback (most recent call last):
    safe_stepwise.errors.RowError: fact 1 sentence is a string, expected a whole number
    """
    readers = [(names.get(column, column), read) for column, read in columns.items()]
    return [
        tuple(read(cell, f"{noun} {number} {name}") for (name, read), cell in zip(readers, row, strict=True))
        for number, row in enumerate(records(value, tuple(columns), label), 1)
    ]


def _read_record(item: Any, columns: tuple[str, ...], label: str) -> tuple[Any, ...]:
    if isinstance(item, Mapping):
        if (missing := next((column for column in columns if column not in item), None)) is not None:
            raise RowError(f"{label} has no {missing!r}")
        return tuple(item[column] for column in columns)
    if not isinstance(item, list | tuple) or len(item) != len(columns):
        raise RowError(f"{label} is {_word_kind(item)}, expected ({', '.join(columns)})")
    return tuple(item)


def _word_kind(value: Any) -> str:
    """Return the value's JSON type in words, for a message."""
    if value is None:
        return "null"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, Mapping) and list(value) == [NO_JSON]:
        return f"of type {value[NO_JSON]}"
    names = {str: "a string", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "an object")
