"""Every option that a command had before the one command line is still read by it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.docs.commands import read

COMMANDS = json.loads(Path(__file__).with_name("options_before.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("command", COMMANDS)
def test_each_option_is_still_read(command: str) -> None:
    for option in COMMANDS[command].values():
        read(shlex.join(["safe-stepwise", *shlex.split(option["line"])]))
