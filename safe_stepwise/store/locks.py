"""Output folders: written by one run at a time, and what a disk refuses in one line."""

import errno
import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from safe_stepwise.errors import UserError
from safe_stepwise.store.files import is_half, sweep

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ENOTDIR)


@contextmanager
def exclusive(folder: Path, who: str = "build", owned: Sequence[str] = ()) -> Iterator[None]:
    """Create ``folder`` and hold it against others until the end, even a violent one.

    ``owned`` are the files and folders there that this run writes: what a killed run left
    half-written among them is removed, and none of them may be a link, as it would be replaced.
    ``folder`` itself may be one.

    Raises ``UserError`` when it cannot be made or written (a full disk in between, too), when
    another (``who``: what such a one is called) holds it, and for a link.
    """
    handle = _opened(folder)
    try:
        if not os.access(folder, os.W_OK | os.X_OK):
            raise UserError(f"{folder}: no permission to write here; choose another --output")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{folder}: another {who} is writing here; wait for it or choose another --output"
            ) from None
        _put_in_order(folder, owned)
        yield
    except OSError as error:
        if is_disk_full(error) or (is_forbidden(error) and _is_in(folder, error.filename)):
            raise cannot_write(Path(error.filename or folder), error) from error
        raise
    finally:
        os.close(handle)


def _opened(folder: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder, os.O_RDONLY)
    except (FileExistsError, NotADirectoryError):
        what = "a link that leads to no folder" if folder.is_symlink() else "a file"
        raise UserError(
            f"{folder}: there is {what} where the output folder should be; remove it or choose another --output"
        ) from None
    except OSError as error:
        raise cannot_write(folder, error) from None


def _put_in_order(folder: Path, owned: Sequence[str]) -> None:
    halves = []
    beside = filter(is_half, folder.iterdir())
    for path in chain(beside, _below(folder / name for name in owned)):
        if path.is_symlink():
            raise UserError(
                f"{path}: a link (to {os.readlink(path)}), which would be replaced or written "
                "through; remove it, put what it leads to in its place, or choose another --output"
            )
        if is_half(path):
            halves.append(path)
    for half in halves:
        sweep(half)


def _is_in(folder: Path, name: object) -> bool:
    """Whether an error may be about a file there: Arrow's name none."""
    return name is None or Path(os.path.abspath(str(name))).is_relative_to(os.path.abspath(folder))


def _below(places: Iterable[Path]) -> Iterator[Path]:
    """The places, and all that is in them; no link is followed."""
    for place in places:
        yield place
        for parent, folders, files in os.walk(place) if not place.is_symlink() else ():
            yield from (Path(parent, name) for name in (*folders, *files))


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
