"""What a finished release's lock says, checked."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from safe_stepwise.errors import UserError
from safe_stepwise.store.documents import read_object
from safe_stepwise.store.names import LOCK


def read_lock(root: Path, needed: Collection[str] = ("version", "files")) -> dict[str, Any]:
    """What the lock of a complete folder holds.

    Raises UserError for one that is not as `scripts.regenerate` writes them, or lacks what is
    ``needed``.
    """
    lock = read_object(root / LOCK)
    for key, fits in _FIELDS.items():
        if (key in needed or key in lock) and not fits(lock.get(key)):
            raise UserError(
                f"{root / LOCK}: not a lock that scripts.regenerate wrote ({key} is missing, or of "
                "another type); delete it and make the release again"
            )
    return lock


def _texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


_FIELDS: Mapping[str, Callable[[Any], bool]] = {
    "version": lambda value: isinstance(value, str),
    "files": _texts,
    "manifest": lambda value: _texts(value) and {"name", "sha256"} <= set(value),
    "skipped": lambda value: isinstance(value, list) and all(isinstance(v, str) for v in value),
}
