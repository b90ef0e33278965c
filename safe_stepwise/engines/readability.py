"""Ends a run early if no reply to its first *units* (questions or requests) can be read, and says why."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safe_stepwise.errors import UserError
from safe_stepwise.store.packaged import read_yaml

MAX_UNREADABLE = 8
"""Number of unreadable units after which a run ends."""
FEW_UNREADABLE, MIN_REPLIES = 3, 24
"""This lower number of unreadable units suffices if together they had at least `MIN_REPLIES` replies."""
PROBES = 4
"""Maximum units under way until the first reply is readable, so that a wrong model shows before it costs much."""
MAX_QUOTED_CHARS = 200
"""Maximum length of a reply, and of the reason why it is unreadable, in a message."""


@dataclass(slots=True)
class Readability:
    """Tracks whether any reply of a run could be read. ``total``: number of units, if known; ``units``: their name."""

    in_flight: int
    total: int = MAX_UNREADABLE
    units: str = "requests"
    is_readable: bool = False
    unread: int = 0
    """Number of units without a readable reply, until one was readable."""
    unread_replies: int = 0
    first: str = ""
    """Why the first unit was unreadable; empty once a unit was readable."""
    ended: str = ""
    """Why the run ended; empty until then. A unit that still waits for a slot then sends nothing."""
    slots: asyncio.Semaphore = field(init=False)
    """The slots of units under way: `PROBES` until a reply was readable, then ``in_flight``."""

    def __post_init__(self) -> None:
        self.slots = asyncio.Semaphore(self.in_flight if self.is_readable else min(PROBES, self.in_flight))

    def record(self, reason: str, replies: int = 1) -> None:
        """Record a unit with ``replies`` replies: the ``reason`` why none could be read, or "" if one could.

        Raises ``UserError`` once too many units were unreadable and none readable.
        """
        if self.is_readable:
            return
        if not reason:
            self.is_readable, self.first = True, ""
            for _ in range(self.in_flight - PROBES):
                self.slots.release()
            return
        self.first = self.first or reason
        self.unread += 1
        self.unread_replies += replies
        limit = FEW_UNREADABLE if self.unread_replies >= MIN_REPLIES else MAX_UNREADABLE
        if self.unread >= min(limit, self.total):
            units = f"the first {self.unread} {self.units}"
            self.ended = self.ended or f"nothing could be read in any reply to {units}; {self.first}"
        self.check()

    def check(self) -> None:
        """Raise ``UserError`` if the run has ended."""
        if self.ended:
            raise UserError(self.ended)


def unreadable_because(text: str, problem: str) -> str:
    """Describe a run's unreadable first reply: how it begins, the problem with it, and the likely cause with advice.

    >>> unreadable_because("Well, Oru.", "no JSON").partition(";")[0]
    "the first reply begins 'Well, Oru.' (no JSON)"
    """
    line, reason = (text.strip().splitlines() or [""])[0][:MAX_QUOTED_CHARS], problem[:MAX_QUOTED_CHARS]
    return f"the first reply begins {line!r} ({reason}); {_likely_cause(text, problem)}"


_WORDS: Mapping[str, Any] = read_yaml(Path(__file__).with_suffix(".yaml"))


def _likely_cause(text: str, problem: str) -> str:
    if "cut at its limit" in problem:
        return str(_WORDS["cut"])
    matches = (c["cause"] for c in _WORDS["causes"] if re.search(c["pattern"], text, re.IGNORECASE | re.MULTILINE))
    return str(next(matches, _WORDS["other"]))
