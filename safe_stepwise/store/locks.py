"""Output folders: written by one run at a time, and what a disk refuses in one line."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safe_stepwise.errors import UserError

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ENOTDIR)


@contextmanager
def exclusive(folder: Path, who: str = "build") -> Iterator[None]:
    """Create ``folder`` and hold it against others until the end, even a violent one.

    Raises ``UserError`` when it cannot be made or written, or when another (``who``: what such a
    one is called) holds it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except (FileExistsError, NotADirectoryError):
        raise UserError(
            f"{folder}: there is a file where the output folder should be; "
            "remove it or choose another --output"
        ) from None
    except OSError as error:
        raise cannot_write(folder, error) from None
    try:
        if not os.access(folder, os.W_OK | os.X_OK):
            raise UserError(f"{folder}: no permission to write here; choose another --output")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{folder}: another {who} is writing here; wait for it or choose another --output"
            ) from None
        yield
    finally:
        os.close(handle)


def cannot_write(folder: Path, error: OSError) -> UserError:
    """The one line for a folder that cannot be written."""
    reason = error.strerror or str(error)
    return UserError(f"{folder}: cannot write ({reason}); choose another --output")


def is_disk_full(error: OSError) -> bool:
    """Whether an error means that no more bytes fit (device, quota or file-size limit)."""
    return error.errno in _DISK_FULL


def is_forbidden(error: OSError) -> bool:
    """Whether an error means that nothing can be written there: forbidden, or a folder is there."""
    return error.errno in _FORBIDDEN
