"""Folders for what is gone again at the end; those of killed runs go at the next."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "safe-stepwise-scratch-"
YOUNG = 60
"""Seconds for which a folder may not be held yet."""


@contextmanager
def scratch() -> Iterator[Path]:
    """An empty folder among the temporary ones, for the time being."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        _sweep(left)
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as name:
        held = os.open(name, os.O_RDONLY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)  # which ends with the process, however that ends
            yield Path(name)
        finally:
            os.close(held)


def _sweep(left: Path) -> None:
    """Remove it if it is ours and no process holds it."""
    with suppress(OSError):
        held = os.open(left, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            about = os.fstat(held)
            if about.st_uid == os.getuid() and time.time() - about.st_mtime > YOUNG:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left)
        finally:
            os.close(held)
