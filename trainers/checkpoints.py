"""Mark complete checkpoints and find the last one, as a run may be killed while it writes a checkpoint.

Transformers resumes from the newest folder, even an incomplete one. Here a checkpoint counts only with its mark, a
file that is written last and lists every file's size. The mark and a run's other records are JSON objects.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safe_stepwise.errors import UserError
from safe_stepwise.store.boundary import read_file
from safe_stepwise.store.files import json_bytes, write_atomically

COMPLETION_MARK = "complete.json"
"""The name of a checkpoint's mark; it holds the run's progress and the files' sizes in bytes."""


def mark_complete(checkpoint: Path, progress: Mapping[str, Any]) -> None:
    """Mark a checkpoint as complete, once all its files are written; ``progress`` is kept in the mark."""
    sizes = {
        file.relative_to(checkpoint).as_posix(): file.stat().st_size
        for file in sorted(checkpoint.rglob("*"))
        if file.is_file() and file.name != COMPLETION_MARK
    }
    write_record(checkpoint / COMPLETION_MARK, {**progress, "files": sizes})


def last_complete(folder: Path) -> Path | None:
    """Return the complete checkpoint with the most steps, or None."""
    return max(filter(is_complete, folder.glob("checkpoint-*")), key=_step, default=None)


def is_complete(checkpoint: Path) -> bool:
    """Return whether a checkpoint has its mark, and each file the size that the mark lists."""
    try:
        sizes = read_record(checkpoint / COMPLETION_MARK)["files"]
        return all((checkpoint / name).stat().st_size == size for name, size in sizes.items())
    except (UserError, OSError, KeyError, AttributeError):
        return False


def remove_stale(folder: Path, last: Path | None) -> list[str]:
    """Remove checkpoints that are incomplete or newer than ``last`` (all if it is None); return their names."""
    removed = []
    for path in sorted(folder.glob("checkpoint-*")):
        if path != last and (not is_complete(path) or last is None or _step(path) > _step(last)):
            shutil.rmtree(path)
            removed.append(path.name)
    return removed


def read_record(file: Path) -> dict[str, Any]:
    """Read a JSON object from a file that we wrote; raise ``UserError`` if it holds something else."""
    return read_file(dict[str, Any], file, "the record", "remove it, and what was made with it, to start again")


def write_record(file: Path, record: Mapping[str, Any]) -> None:
    write_atomically(file, json_bytes(record))


def _step(checkpoint: Path) -> int:
    digits = checkpoint.name.rpartition("-")[2]
    return int(digits) if digits.isdigit() else -1
