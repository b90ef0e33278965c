"""Rejected rows: each goes into ``rejects.jsonl`` with its reason, or ends the build."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from builders.work.shards import Shard
from safe_stepwise.errors import UserError
from safe_stepwise.store import fields, names


@dataclass(frozen=True, slots=True)
class Reject:
    """A row in no split, with the reason, and its content if that is at fault; ``index`` counts rows of a chunk."""

    index: int
    location: str
    id: str | None
    reason: str
    row: Any


@dataclass(frozen=True, slots=True)
class RowsSummary:
    """A chunk's summary: (index, id) of each row that was read, the rejects, and a model's replies by class."""

    ids: tuple[tuple[int, str], ...]
    rejects: tuple[Reject, ...]
    replies: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return not self.replies.get("failed")


@dataclass(frozen=True, slots=True)
class RejectPolicy:
    """Whether rejected rows are kept beside the build, or the first of them ends it."""

    benchmark: str
    split: str
    keep: bool

    def check(self, shard: Shard[RowsSummary]) -> None:
        """Raise ``UserError`` for a row that ends the build."""
        for reject in shard.summary.rejects:
            self.line(reject)

    def line(self, reject: Reject) -> bytes:
        """Render a reject as a line of ``rejects.jsonl``; raise ``UserError`` if rejects are not kept."""
        if not self.keep:
            id_ = "" if reject.id is None else f" (id {reject.id})"
            mend = f"; mend the row, or run with --on-error keep to put such rows into {names.REJECTS}"
            is_mended = fields.OTHER_BENCHMARK in reject.reason
            raise UserError(f"{reject.location}{id_}: {reject.reason}{'' if is_mended else mend}")
        record = {"benchmark": self.benchmark, "split": self.split, **asdict(reject)}
        del record["index"]
        line = json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
        # A lone surrogate becomes its JSON escape, as a broken row may have held it.
        return line.encode("utf-8", "backslashreplace")
