"""Rows that are in no split: told with the reason in ``rejects.jsonl``, or the end of a build."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from builders.work.fields import OTHER_BENCHMARK
from builders.work.shards import Shard
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import REJECTS


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


@dataclass(frozen=True, slots=True)
class RowsRead:
    """A chunk's summary: the ids of the rows that were read by their index in it, and the other rows.

    ``replies`` counts a model's replies by class, if one was asked.
    """

    ids: tuple[tuple[int, str], ...]
    rejects: tuple[Reject, ...]
    replies: Mapping[str, int] = field(default_factory=dict)

    @property
    def settled(self) -> bool:
        """Whether no reply of the model is owed any more."""
        return not self.replies.get("failed")


@dataclass(frozen=True, slots=True)
class Rejecting:
    """What becomes of rejected rows: ``kept`` beside the build, or the first of them ends it."""

    benchmark: str
    split: str
    kept: bool

    def check(self, shard: Shard[RowsRead]) -> None:
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
        record = {"benchmark": self.benchmark, "split": self.split, **asdict(reject)}
        del record["index"]
        line = json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
        # Half a surrogate pair becomes its JSON escape, which is what a broken row may have held.
        return line.encode("utf-8", "backslashreplace")
