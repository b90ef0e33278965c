"""Read a finished release's lock, and compare files with it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safe_stepwise.errors import UserError
from safe_stepwise.store import boundary, names


@dataclass(frozen=True, slots=True)
class _ManifestRecord:
    """The file name and digest of the manifest that a release was made from."""

    name: str
    sha256: str


_FIELDS: Mapping[str, Any] = {
    "version": str,
    "files": Mapping[str, str],
    "manifest": _ManifestRecord,
    "skipped": Sequence[str],
}


def read_lock(root: Path, required: Collection[str] = ("version", "files")) -> dict[str, Any]:
    """Read the lock of a folder; raise ``UserError`` if it is damaged or lacks a key of ``required``."""
    try:
        lock = boundary.read_object(root / names.LOCK)
    except UserError as error:
        raise UserError(f"{error}; delete it and make the release again") from None
    try:
        for key, kind in _FIELDS.items():
            if key in required or key in lock:
                boundary.read(kind, lock.get(key), key)
    except ValueError as error:
        raise UserError(
            f"{root / names.LOCK}: not a lock that safe-stepwise regenerate wrote ({error}); delete it and make the "
            "release again"
        ) from None
    return lock


def refuse_changes(root: Path, lock: Mapping[str, Any], digests: Mapping[str, str], advice: str) -> None:
    """Raise ``UserError``, ending in ``advice``, for the first file that is only in one or has another SHA-256."""
    locked = lock["files"]
    for name in sorted({*locked, *digests}):
        if locked.get(name) != digests.get(name):
            state = "is missing" if name not in digests else "is not part of the release"
            state = "differs" if name in locked and name in digests else state
            raise UserError(f"{root / name}: {state}, says {names.LOCK}; {advice}")
