"""A chunk of raw rows on its way to nouns: read one by one, what can't be read kept apart."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from builders.benchmarks.sources import RawRow, decode
from builders.work.rejects import Reject
from safe_stepwise.errors import RowError
from safe_stepwise.records import canonical_json

T = TypeVar("T")


def read_rows(
    rows: Sequence[RawRow], parse: Callable[[Mapping[str, Any]], T], rejects: list[Reject]
) -> Iterator[tuple[int, T]]:
    """What ``parse`` makes of each row, with its index; ``rejects`` gets those it can't read."""
    for index, raw in enumerate(rows):
        content: Any = None
        try:
            content = decode(raw)
            parsed = parse(content)
        except RowError as error:
            row = raw.payload if content is None else content
            rejects.append(Reject(index, raw.location, _id_of(content), str(error), row))
            continue
        yield index, parsed


def content_of(row: RawRow) -> Any:
    """A row as an object, or its text where it is none."""
    try:
        return decode(row)
    except RowError:
        return row.payload


def digest_of(head: Sequence[Any], rows: Iterable[RawRow]) -> str:
    """SHA-256 (64 hex digits) of what a chunk depends on and of its rows with their places."""
    digest = hashlib.sha256(canonical_json(head).encode())
    for row in rows:
        said = row.payload if isinstance(row.payload, str) else canonical_json(row.payload)
        digest.update(f"{row.location}\0{said}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _id_of(content: Any) -> str | None:
    """The id a broken row claims to have, under either of the benchmarks' names for it."""
    said = [content.get(key) for key in ("id", "_id")] if isinstance(content, Mapping) else []
    return next((one for one in said if isinstance(one, str)), None)
