"""A chunk of raw rows on its way to nouns: read one by one, what can't be read kept apart."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from builders.benchmarks.sources import RawRow, decode
from builders.work.rejects import Reject, RowsRead
from safe_stepwise.errors import RowError
from safe_stepwise.records import canonical_json

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RowsChunk:
    """Consecutive rows of a source, and the folder of their shard; ``start`` counts the source's rows from 0.

    A dataset's chunk adds what its rows depend on, and how they are made: the rest of a `work.shards.Job`.
    """

    benchmark: str
    split: str
    start: int
    rows: tuple[RawRow, ...]
    folder: Path

    summary_kind: ClassVar[type[RowsRead]] = RowsRead

    @property
    def size(self) -> int:
        """Rows of the source."""
        return len(self.rows)

    def location(self, index: int) -> str:
        """Where a row is in the source."""
        return self.rows[index].location

    def raw_row(self, index: int) -> Any:
        """A row as an object, or its text where it is none."""
        try:
            return decode(self.rows[index])
        except RowError:
            return self.rows[index].payload

    def parsed(self, parse: Callable[[Mapping[str, Any]], T], rejects: list[Reject]) -> Iterator[tuple[int, T]]:
        """What ``parse`` makes of each row, with its index; ``rejects`` gets those it can't read."""
        for index, raw in enumerate(self.rows):
            content: Any = None
            try:
                content = decode(raw)
                parsed = parse(content)
            except RowError as error:
                row = raw.payload if content is None else content
                rejects.append(Reject(index, raw.location, _id_of(content), str(error), row))
                continue
            yield index, parsed

    def digest(self, head: Sequence[Any]) -> str:
        """SHA-256 (64 hex digits) of what the chunk depends on, and of its rows with their places."""
        digest = hashlib.sha256(canonical_json(head).encode())
        for row in self.rows:
            content = row.payload if isinstance(row.payload, str) else canonical_json(row.payload)
            digest.update(f"{row.location}\0{content}\0".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


def _id_of(content: Any) -> str | None:
    """The id a broken row claims to have, under either of the benchmarks' names for it."""
    said = [content.get(key) for key in ("id", "_id")] if isinstance(content, Mapping) else []
    return next((one for one in said if isinstance(one, str)), None)
