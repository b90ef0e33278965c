"""What the commands of a checkout share: how models are asked, and how a command ends."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from safe_stepwise import prompts
from safe_stepwise.commands.command import command as command
from safe_stepwise.commands.ending import run as run
from safe_stepwise.commands.ending import warn as warn
from safe_stepwise.commands.values import Count, Seconds
from safe_stepwise.engines.base import AS_PROMPTED, Allowance
from safe_stepwise.engines.client import IN_FLIGHT

HELP = Path(__file__).with_name("help")
"""What is written of the commands: options in ``NAME.yaml``, notes in ``NAME.txt``."""


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def roles_of(names: Iterable[str]) -> tuple[str, ...]:
    """The roles of some prompts, each once."""
    return tuple(dict.fromkeys(prompts.load(name).role for name in names))


@dataclass(frozen=True, kw_only=True)
class Asking:
    """How models are asked: where replies are kept, how many requests wait, for how long, what roles may have."""

    cache: Path | None = None
    in_flight: Count = IN_FLIGHT
    timeout: Seconds | None = None
    allowance: Allowance = AS_PROMPTED
