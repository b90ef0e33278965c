"""How much work something is, whatever the machine is busy with."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def calls(run: Callable[[], object]) -> int:
    """How many functions are called, those written in C included."""
    counted = 0

    def count(frame: object, event: str, arg: Any) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(before)
    return counted
