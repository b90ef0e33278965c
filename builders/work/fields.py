"""Typed reading of a raw row's fields: what every benchmark's ``parse`` checks in the same way.

Benchmarks travel in several shapes. The original files hold lists of lists or of objects; Hub
copies hold one list a column, or the whole value as a JSON string. ``records`` reads them all.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from safe_stepwise.errors import RowError
from safe_stepwise.store.boundary import parse_json
from safe_stepwise.store.sizes import PASSAGE

Reader = Callable[[Any, str], Any]
"""Checks a value; takes the value and its label in error messages."""
NO_JSON = "not in JSON"
"""The only key of an object that replaces a value JSON cannot hold; its value is the type."""

OTHER_BENCHMARK = "try --benchmark"
"""Words of a reject's reason that already says what to do."""
LONGEST = PASSAGE
"""Characters of a text at most; texts of real rows have a sixth of it."""
MAX_ENTRIES = 1_000
"""Entries of a list at most; lists of real rows have up to 53, the sentences of a passage."""


def require(row: Mapping[str, Any], *names: str) -> Any:
    """The first of the named fields that is there and not null, else RowError.

    >>> require({"id": "q1"}, "_id", "id")
    'q1'
    """
    for name in names:
        if row.get(name) is not None:
            return row[name]
    raise RowError(f"missing field {' or '.join(map(repr, names))}")


def text(value: Any, label: str) -> str:
    """The value unchanged if it is a string that UTF-8 can hold, of at most `LONGEST` characters, else RowError."""
    if not isinstance(value, str):
        raise RowError(f"{label} is {_kind(value)}, expected a string")
    if len(value) > LONGEST:
        raise RowError(f"{label} has {len(value)} characters, at most {LONGEST} are read")
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise RowError(f"{label} holds half a character at position {error.start}") from error
    return value


def filled_text(value: Any, label: str) -> str:
    """The value if it is a `text` that is not blank, else RowError; white space around it stays."""
    checked = text(value, label)
    if not checked.strip():
        raise RowError(f"{label} is empty")
    return checked


def answer(row: Mapping[str, Any]) -> str:
    """The row's gold answer, or RowError that names the usual cause, an unlabelled test split."""
    value = row.get("answer")
    if value is None or (isinstance(value, str) and not value.strip()):
        raise RowError("no answer: a test split without answers can't be verified")
    return text(value, "answer")


def integer(value: Any, label: str) -> int:
    """The value when it is a whole number (a bool is none), else RowError."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise RowError(f"{label} is {_kind(value)}, expected a whole number")
    return value


def boolean(value: Any, label: str) -> bool:
    """The value when it is true or false, else RowError."""
    if not isinstance(value, bool):
        raise RowError(f"{label} is {_kind(value)}, expected true or false")
    return value


def items(value: Any, label: str, limit: int = MAX_ENTRIES) -> Sequence[Any]:
    """The value when it is a list of at most ``limit``, else RowError."""
    if not isinstance(value, list | tuple):
        raise RowError(f"{label} is {_kind(value)}, expected a list")
    if len(value) > limit:
        raise RowError(f"{label} has {len(value)} entries, at most {limit} are read")
    return value


def records(value: Any, columns: tuple[str, ...], label: str) -> list[tuple[Any, ...]]:
    """Rows of ``columns``, in order, from any of the shapes a nested field has.

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
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError as error:
            raise RowError(f"{label} is a string that isn't JSON") from error
    if isinstance(value, Mapping):
        return _transposed(value, columns, label)
    return [_record(item, columns, f"{label} {number}") for number, item in enumerate(items(value, label), 1)]


def typed(value: Any, label: str, noun: str, columns: Mapping[str, Reader], **names: str) -> list[tuple[Any, ...]]:
    """The rows of `records`, with each value read by its column's reader.

    Error messages call a row ``noun`` and its number, and a column as in ``names``, if it is there.

    >>> typed([["Oru", "x"]], "supporting_facts", "fact", {"title": text, "sent_id": integer}, sent_id="sentence")
    Traceback (most recent call last):
    safe_stepwise.errors.RowError: fact 1 sentence is a string, expected a whole number
    """
    readers = [(names.get(column, column), read) for column, read in columns.items()]
    return [
        tuple(read(cell, f"{noun} {number} {name}") for (name, read), cell in zip(readers, row, strict=True))
        for number, row in enumerate(records(value, tuple(columns), label), 1)
    ]


def _record(item: Any, columns: tuple[str, ...], label: str) -> tuple[Any, ...]:
    if isinstance(item, Mapping):
        missing = next((column for column in columns if column not in item), None)
        if missing is not None:
            raise RowError(f"{label} has no {missing!r}")
        return tuple(item[column] for column in columns)
    if not isinstance(item, list | tuple) or len(item) != len(columns):
        raise RowError(f"{label} is {_kind(item)}, expected ({', '.join(columns)})")
    return tuple(item)


def _transposed(value: Mapping[str, Any], columns: tuple[str, ...], label: str) -> list[tuple[Any, ...]]:
    missing = next((column for column in columns if column not in value), None)
    if missing is not None:
        raise RowError(f"{label} has no column {missing!r}")
    lists = [items(value[column], f"{label}.{column}") for column in columns]
    if len({len(column) for column in lists}) > 1:
        sizes = ", ".join(f"{n} {len(c)}" for n, c in zip(columns, lists, strict=True))
        raise RowError(f"{label} has columns of different lengths ({sizes})")
    return list(zip(*lists, strict=True))


def _kind(value: Any) -> str:
    """The value's JSON type, for a message.

    >>> _kind([1, 2]), _kind(None)
    ('a list of 2', 'null')
    """
    if value is None:
        return "null"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, Mapping) and list(value) == [NO_JSON]:
        return f"of type {value[NO_JSON]}"
    names = {str: "a string", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "an object")
