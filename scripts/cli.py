"""What the commands of a checkout share: how models are asked, and how a command ends."""

import os
from collections.abc import Iterable
from pathlib import Path

from safe_stepwise import prompts
from safe_stepwise.commands.command import command as command
from safe_stepwise.commands.ending import run as run
from safe_stepwise.commands.ending import warn as warn
from safe_stepwise.commands.model_options import ModelOptions as ModelOptions

HELP = Path(__file__).with_name("help")
"""What is written of the commands: options in ``NAME.yaml``, notes in ``NAME.txt``."""


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def roles_of(names: Iterable[str]) -> tuple[str, ...]:
    """The roles of some prompts, each once."""
    return tuple(dict.fromkeys(prompts.load(name).role for name in names))
