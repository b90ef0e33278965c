"""What a finished release's lock says, checked."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safe_stepwise.errors import UserError
from safe_stepwise.store.documents import read_object
from safe_stepwise.store.names import LOCK
from safe_stepwise.store.shapes import shaped


@dataclass(frozen=True, slots=True)
class _Manifest:
    """Of which it is the lock."""

    name: str
    sha256: str


_FIELDS: Mapping[str, Any] = {
    "version": str,
    "files": Mapping[str, str],
    "manifest": _Manifest,
    "skipped": Sequence[str],
}


def read_lock(root: Path, needed: Collection[str] = ("version", "files")) -> dict[str, Any]:
    """What the lock of a complete folder holds.

    Raises UserError for one that is not as `scripts.regenerate` writes them, or lacks what is
    ``needed``.
    """
    lock = read_object(root / LOCK)
    try:
        for key, kind in _FIELDS.items():
            if key in needed or key in lock:
                shaped(lock.get(key), kind, key)
    except ValueError as error:
        raise UserError(
            f"{root / LOCK}: not a lock that scripts.regenerate wrote ({error}); delete it and "
            "make the release again"
        ) from None
    return lock
