"""Rows that are in no split: told with the reason in ``rejects.jsonl``, or the end of a build."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from safe_stepwise.errors import UserError
from safe_stepwise.store.names import REJECTS

OTHER_BENCHMARK = "try --benchmark"
"""In a reason that needs no other advice."""


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that is in no split: where it was, why, and the row itself as far as it was read.

    ``index`` counts the rows of its chunk.
    """

    index: int
    location: str
    id: str | None
    reason: str
    row: Any


class Found(Protocol):
    """What a chunk says of its rows: the ids of those that were read by index, and the others."""

    @property
    def ids(self) -> tuple[tuple[int, str], ...]: ...
    @property
    def rejects(self) -> tuple[Reject, ...]: ...
    @property
    def settled(self) -> bool: ...


class Rows(Protocol):
    """A chunk that can show its rows."""

    def location(self, index: int) -> str:
        """Where a row is in the source."""

    def raw_row(self, index: int) -> Any:
        """A row's content as far as it can be read."""


class Checked(Protocol):
    """A shard, as far as its rejects go."""

    @property
    def summary(self) -> Found: ...


def duplicates(rows: Rows, ids: Iterable[tuple[int, str]], seen: dict[str, str]) -> list[Reject]:
    """Rows of a chunk whose id an earlier row had. ``seen`` maps ids to where the first row was."""
    dropped = []
    for index, id_ in ids:
        if id_ in seen:
            reason = f"duplicate id {id_!r}, first at {seen[id_]}"
            dropped.append(Reject(index, rows.location(index), id_, reason, rows.raw_row(index)))
        else:
            seen[id_] = rows.location(index)
    return dropped


@dataclass(frozen=True, slots=True)
class Rejecting:
    """What becomes of rejected rows: ``kept`` beside the build, or the first of them ends it."""

    benchmark: str
    split: str
    kept: bool

    def check(self, shard: Checked) -> None:
        """Raise ``UserError`` for a row that ends the build."""
        for reject in shard.summary.rejects:
            self.line(reject)

    def line(self, reject: Reject) -> bytes:
        """A row of ``rejects.jsonl``; ``UserError`` if such rows are not kept."""
        if not self.kept:
            id_ = "" if reject.id is None else f" (id {reject.id})"
            mend = f"; mend the row, or run with --on-error keep to put such rows into {REJECTS}"
            is_mended = OTHER_BENCHMARK in reject.reason
            raise UserError(f"{reject.location}{id_}: {reject.reason}{'' if is_mended else mend}")
        told = {name: getattr(reject, name) for name in ("location", "id", "reason", "row")}
        record = {"benchmark": self.benchmark, "split": self.split, **told}
        line = json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
        # Half a surrogate pair becomes its JSON escape, which is what a broken row may have held.
        return line.encode("utf-8", "backslashreplace")
