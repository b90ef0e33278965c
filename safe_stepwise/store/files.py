"""Files that never exist in part, and their digests."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def sha256_of(path: Path) -> str:
    """Hexadecimal, of a file's content, which need not fit into memory."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def write_atomically(path: Path, content: ReadableBuffer) -> None:
    """Write a file so that it never exists in part: temporary file, fsync, rename."""
    write_parts(path, [content])


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines (without their newlines) as UTF-8, as `write_atomically` does."""
    write_parts(path, (f"{line}\n".encode("utf-8", "backslashreplace") for line in lines))


def write_parts(path: Path, parts: Iterable[ReadableBuffer]) -> None:
    """Write a file from its parts, as `write_atomically` does."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
