"""Ends a run early if no reply to its first *units* (questions or requests) can be read, and says why."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from safe_stepwise.errors import UserError

MAX_UNREADABLE = 8
"""Unreadable units after which a run ends."""
FEWER_QUESTIONS, FEW_REPLIES = 3, 24
"""So many unreadable units suffice if they had at least so many replies together."""
PROBES = 4
"""Units under way until the first reply is readable, so that a wrong model shows before it costs much."""
QUOTED_CHARACTERS = 200
"""Characters of a reply, and of the reason why it is unreadable, in a message."""


@dataclass(slots=True)
class Readability:
    """Tracks whether any reply of a run could be read. ``total``: number of units, if known; ``units``: their name."""

    in_flight: int
    total: int = MAX_UNREADABLE
    units: str = "requests"
    is_readable: bool = False
    unread: int = 0
    """Units without a readable reply, until the first readable one."""
    unread_replies: int = 0
    first: str = ""
    """Why the first unit was unreadable; empty once one is readable."""
    ended: str = ""
    """Why the run ended; empty as long as it has not. A unit that still waits for a slot then sends nothing."""
    slots: asyncio.Semaphore = field(init=False)
    """Slots of units under way: `PROBES` until a reply was readable, then ``in_flight``."""

    def __post_init__(self) -> None:
        self.slots = asyncio.Semaphore(self.in_flight if self.is_readable else min(PROBES, self.in_flight))

    def record(self, reason: str, replies: int = 1) -> None:
        """Record a unit with so many ``replies``: the ``reason`` why none could be read, or "" if one could.

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
        enough = FEWER_QUESTIONS if self.unread_replies >= FEW_REPLIES else MAX_UNREADABLE
        if self.unread >= min(enough, self.total):
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
    line, reason = (text.strip().splitlines() or [""])[0][:QUOTED_CHARACTERS], problem[:QUOTED_CHARACTERS]
    return f"the first reply begins {line!r} ({reason}); {_likely_cause(text, problem)}"


_PARSER_ADVICE = "serve a thinking model with its reasoning parser (vLLM: --reasoning-parser NAME)"
_TOKENS_ADVICE = "give it more tokens (--max-tokens ROLE=N)"
_TEMPLATE_ADVICE = "serve it with its own chat template (vLLM: --chat-template FILE)"
_ALOUD = re.compile(
    r"\A\W*(?:ok|okay|alright|hmm+|well|wait|so|let me|let's|the user|thinking process|analysis|first,? (?:i|let)"
    r"|we (?:need|have|are)|i (?:need|have))\b|</?\w*think",
    re.IGNORECASE,
)
_TURNS = re.compile(
    r"<\|\w+\|>|<(?:start|end)_of_turn>|\[/?INST\]|^(?:human|user|assistant|### \w+):?\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_CAUSES: Sequence[tuple[re.Pattern[str], str]] = (
    (_ALOUD, f"it seems to think aloud: {_PARSER_ADVICE}, or {_TOKENS_ADVICE}"),
    (_TURNS, f"it seems to write turns of a chat: {_TEMPLATE_ADVICE}, or name a model that is tuned for chat"),
    (re.compile(r"\A\s*\Z"), f"it says nothing: {_TEMPLATE_ADVICE}, {_PARSER_ADVICE}, or {_TOKENS_ADVICE}"),
)
"""Patterns of unreadable replies, with the likely cause and advice."""


def _likely_cause(text: str, problem: str) -> str:
    if "cut at its limit" in problem:
        return f"it needs more room: {_TOKENS_ADVICE}, or {_PARSER_ADVICE}"
    for sign, cause in _CAUSES:
        if sign.search(text):
            return cause
    return (
        "does the model keep to the form that is asked for? Name a larger one, or one that is tuned for chat; "
        f"{_TEMPLATE_ADVICE}; {_PARSER_ADVICE}; or {_TOKENS_ADVICE}"
    )
