"""The imports and helpers that the commands of a checkout share."""

import os
from pathlib import Path

from safe_stepwise.commands.command import command as command
from safe_stepwise.commands.ending import run as run
from safe_stepwise.commands.options import ModelOptions as ModelOptions
from safe_stepwise.prompts import roles_of as roles_of
from safe_stepwise.store.progress import note as note

HELP = Path(__file__).with_name("help")
"""The folder of the commands' help texts: of options in ``NAME.yaml``, notes in ``NAME.txt``."""


def cores() -> int:
    """Return the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
