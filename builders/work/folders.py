"""Release folders on disk: one build at a time, swapped in whole, never half-written."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safe_stepwise.errors import UserError
from safe_stepwise.store.names import STATISTICS

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Create ``folder`` and hold it against other builds until the end, even a violent one.

    Raises ``UserError`` when it cannot be made or written, or when another build holds it.
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
                f"{folder}: another build is writing here; wait for it or choose another --output"
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
    """Whether an error means that this user may not write there."""
    return error.errno in _FORBIDDEN


def read_statistics(dataset: Path) -> list[dict[str, Any]]:
    """The statistics of every build in a dataset folder, by file name; none if it is not there.

    Raises ``UserError`` for a folder that holds something else than a dataset of ours.
    """
    if not dataset.exists():
        return []
    if not dataset.is_dir():
        raise UserError(f"{dataset}: a file is in the way of the dataset folder; remove it")
    files = sorted((dataset / STATISTICS).glob("*.json"))
    if not files and any(dataset.iterdir()):
        raise UserError(
            f"{dataset}: not a dataset of build_verified (no statistics/*.json in it); "
            "choose another --output"
        )
    return [_read_json(file) for file in files]


def check_version(dataset: Path, version: str) -> None:
    """Raise ``UserError`` if the folder holds a build of another version."""
    for build in read_statistics(dataset):
        if build["version"] != version:
            raise UserError(
                f"{dataset}: holds version {build['version']}, but this build is {version}; choose "
                f"another --output, or continue it with --version {build['version']}"
            )


def link_tree(source: Path, target: Path) -> None:
    """Copy a folder by hard links, as its files are replaced and never changed in place."""
    if source.exists():
        shutil.copytree(source, target, copy_function=_link_or_copy)


def swap_in(new: Path, final: Path) -> None:
    """Put a complete folder in the place of ``final``; `recover` mends a crash in between."""
    old = _old(final)
    if final.exists():
        final.rename(old)
    new.rename(final)
    sync_folder(final.parent)
    shutil.rmtree(old, ignore_errors=True)


def recover(final: Path) -> None:
    """Undo or finish a `swap_in` that was interrupted."""
    old = _old(final)
    if not old.exists():
        return
    if final.exists():
        shutil.rmtree(old)
    else:
        old.rename(final)


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries, so that a rename survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _old(final: Path) -> Path:
    return final.with_name(f".{final.name}.old")


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _read_json(file: Path) -> dict[str, Any]:
    try:
        build = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: cannot be read ({error}); choose another --output") from None
    if not isinstance(build, dict) or "version" not in build:
        raise UserError(f"{file}: names no version; choose another --output")
    return build
