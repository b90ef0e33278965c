"""How far the answer to a question has come."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from safe_stepwise.records import Attempt


@dataclass(frozen=True, slots=True)
class Standing:
    """What was tried so far, the checker's label of each try, and at the end what it came to."""

    attempts: tuple[Attempt, ...]
    labels: tuple[str, ...]
    """Empty where the question has no facts that the checker could go by."""
    record: Mapping[str, Any] | None = None
