"""Release folders on disk: swapped in whole, never half-written."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from safe_stepwise.errors import UserError
from safe_stepwise.store.names import STATISTICS


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
