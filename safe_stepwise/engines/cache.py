"""The response cache, which is also the journal: one SQLite file, shared by several processes.

A completion is on disk before its caller sees it, so a run that is killed and started again
repeats no call whose reply it had received.
"""

import json
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tenacity import retry, retry_if_exception, stop_after_delay
from tenacity.wait import wait_random

from safe_stepwise.engines.base import Completion
from safe_stepwise.errors import UserError
from safe_stepwise.records import Usage
from safe_stepwise.store.parsing import parse_json

_TABLE = """
create table if not exists completions (
    key text primary key, text text not null, finish text not null,
    prompt integer not null, cached integer not null, completion integer not null
) without rowid
"""
_PUT = """
insert into completions values (?, ?, ?, ?, ?, ?) on conflict (key) do update set
    text = excluded.text, finish = excluded.finish, prompt = excluded.prompt,
    cached = excluded.cached, completion = excluded.completion
where completions.finish = 'length'
"""
_BUSY_S = 60


def default_cache() -> Path:
    """Where replies of models are kept: ``$SAFE_STEPWISE_CACHE``, or the user's cache folder."""
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    named = os.environ.get("SAFE_STEPWISE_CACHE")
    return Path(named) if named else Path(folder) / "safe_stepwise" / "replies.sqlite"


class ResponseCache:
    """Completions by `request_key`.

    Opened in WAL mode, where readers never wait and writers queue; a file system without shared memory (NFS) can't do
    that, so processes on several machines need a file each. Raises ``UserError`` when the file can't be opened, is no
    such cache, or the disk is full.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # The event loop that asks may run in another thread than the one that opens.
            self._db = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
            self._use_wal()
            # Survives a killed process; only a power cut may lose the last replies.
            self._db.execute("pragma synchronous = normal")
            self._db.execute(_TABLE)
            self._row("")  # a table of that name with other columns shows here
        except (OSError, sqlite3.Error) as error:
            raise UserError(f"{path}: cannot be used as a response cache ({error}); choose another --cache") from error

    def get(self, key: str) -> Completion | None:
        """The completion stored under a key; raises ``UserError`` if the file is damaged."""
        try:
            row = self._row(key)
            if row is None:
                return None
            return _completion(*row)
        except (sqlite3.Error, ValueError) as error:
            raise UserError(f"{self.path}: cannot be read ({error}); choose another --cache") from error

    def put(self, found: Sequence[tuple[str, Completion]]) -> None:
        """Store completions, all or none; what is there already stays, unless it was cut off.

        Who asks again for what was cut found nothing in it.
        """
        rows = [
            # As JSON, which can hold the half surrogates that a broken reply may contain.
            (key, json.dumps(c.text), c.finish, c.usage.prompt, c.usage.cached, c.usage.completion)
            for key, c in found
        ]
        try:
            with self._db:
                self._db.execute("begin immediate")
                self._db.executemany(_PUT, rows)
        except (sqlite3.Error, OverflowError) as error:
            raise UserError(f"{self.path}: cannot be written ({error})") from error

    @retry(
        retry=retry_if_exception(lambda e: "locked" in str(e)),
        wait=wait_random(0.01, 0.1),
        stop=stop_after_delay(_BUSY_S),
        reraise=True,
    )
    def _use_wal(self) -> None:
        """Of several who open a new file at once SQLite lets one switch and sends the rest away."""
        self._db.execute("pragma journal_mode = wal")

    def _row(self, key: str) -> tuple[Any, ...] | None:
        query = "select text, finish, prompt, cached, completion from completions where key = ?"
        row: tuple[Any, ...] | None = self._db.execute(query, (key,)).fetchone()
        return row

    def __len__(self) -> int:
        (number,) = self._db.execute("select count(*) from completions").fetchone()
        return int(number)

    def close(self) -> None:
        """Close the file; what was put stays."""
        self._db.close()


def _completion(text: Any, finish: Any, *usage: Any) -> Completion:
    """What a row says; ``ValueError`` if we never wrote it, as SQLite's columns take any type."""
    said = parse_json(text) if isinstance(text, str) else None
    counted = all(type(count) is int and count >= 0 for count in usage)
    if not isinstance(said, str) or finish not in ("stop", "length") or not counted:
        raise ValueError("a row is no reply of a model")
    return Completion(said, Usage(*usage), finish)
