"""What releases and their parts are called: tags ``vMAJOR.MINOR.PATCH``, datasets, adapters."""

from __future__ import annotations

import re

from safe_stepwise.errors import UserError

VERIFIED, NOISE_LABELS, VERIFIER_STEPS = DATASETS = (
    *("safe-verified-multihop", "safe-noise-labels", "safe-verifier-steps"),
)

_VERSION = re.compile(r"v(\d+)\.(\d+)\.(\d+)")


def known_version(version: str) -> str:
    """``version``, if it is one. Raises ``UserError`` for what is no ``vMAJOR.MINOR.PATCH``."""
    version_key(version)
    return version


def version_key(version: str) -> tuple[int, ...]:
    """A version to sort by; raises as `known_version`.

    >>> version_key("v1.10.0") > version_key("v1.9.0")
    True
    """
    match = _VERSION.fullmatch(str(version))
    if match is None:
        raise UserError(f"version {version!r}: write it as vMAJOR.MINOR.PATCH, like v1.0.0")
    return tuple(map(int, match.groups()))


def adapter_repo(base: str) -> str:
    """The adapter's repo, called after its base model.

    Raises ``UserError`` for a base model without a name.

    >>> adapter_repo("Qwen/Qwen3-8B")
    'safe-verifier-Qwen3-8B'
    """
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", base.rstrip("/").rsplit("/", 1)[-1]).strip("-.")
    if not name:
        raise UserError(f"base model {base!r} has no name to call the adapter's repo after")
    return f"safe-verifier-{name}"
