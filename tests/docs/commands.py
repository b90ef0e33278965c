"""The fences of Markdown: commands that can be run, or read where they need what is not here."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from safe_stepwise.commands.main import NAME, group
from tests.memory.sitecustomize import PYTHONPATH

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
NEEDS = "# needs "
"""How the first line of a fence starts that needs a GPU, the network or a file of the reader's."""


@dataclass(frozen=True, slots=True)
class Fence:
    """What stands in a fence; ``needs`` says what is not here, or is empty."""

    language: str
    text: str
    needs: str

    @property
    def commands(self) -> list[str]:
        """Its commands without their remarks, a line each."""
        lines = self.text.replace("\\\n", " ").splitlines()
        found = (re.sub(r"(^|\s)#( .*|$)", "", line).strip() for line in lines)
        return [line for line in found if line]


def fences(file: Path) -> list[Fence]:
    """The fences of a page in their order."""
    return [
        Fence(language, text, text.partition("\n")[0].removeprefix(NEEDS) * text.startswith(NEEDS))
        for _, language, text in FENCE.findall(file.read_text("utf-8"))
    ]


def run(command: str) -> str:
    """Carry out a command in this process and folder; what `safe-stepwise` prints."""
    words, _, target = command.partition(" > ")
    name, *arguments = shlex.split(words)
    if words.endswith("register"):  # where it puts the module is settled as evaluate is imported
        return python("from safe_stepwise.register import main; main([])", Path.cwd())
    if name == NAME:
        told = CliRunner().invoke(group, arguments, catch_exceptions=False)
        assert told.exit_code == 0, told.output
        if target:
            Path(target).write_text(told.stdout, "utf-8")
        return told.stdout
    module(name, arguments).main(arguments[2:])
    return ""


def read(command: str) -> None:
    """Parse a command as it does itself, and go no further."""
    name, *arguments = shlex.split(command)
    if name in ("pip", "make", "scripts/serve.sh"):
        return
    if name == "accelerate":
        name, arguments = "python", arguments[arguments.index("-m") :]
    if name == "python" and arguments[1].startswith("scripts."):
        name, arguments = NAME, [arguments[1].removeprefix("scripts."), *arguments[2:]]
    if name == NAME:
        _parse(arguments)
        return
    main = module(name, arguments).main
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_known_args", _parsed)
        with pytest.raises(_Read):
            main(arguments[2:])


def _parse(arguments: list[str]) -> None:
    """Parse a command line of ours; raises ``ValueError`` with the option that is wrong."""
    try:
        above = click.Context(group, **group.context_settings)
        known = group.get_command(above, arguments[0])
        assert known is not None
        line = known.make_context(arguments[0], arguments[1:], parent=above)
        if isinstance(known, click.Group):
            _, inner, rest = known.resolve_command(line, [*line._protected_args, *line.args])
            assert inner is not None
            inner.make_context(inner.name, rest, parent=line)
    except click.UsageError as error:
        raise ValueError(error.format_message()) from None


def module(name: str, arguments: list[str]) -> Any:
    """The module that ``python -m`` runs."""
    assert (name, arguments[0]) == ("python", "-m"), arguments
    return import_module(arguments[1])


class _Read(Exception):
    """The command line could be read."""


_PARSE = argparse.ArgumentParser.parse_known_args


def _parsed(parser: argparse.ArgumentParser, *given: Any, **options: Any) -> None:
    _, unknown = _PARSE(parser, *given, **options)
    assert not unknown, unknown
    raise _Read


def python(text: str, place: Path) -> str:
    """What a Python snippet prints in a folder, with a home of its own, offline."""
    environment = os.environ | {
        "HOME": str(place / "home"),
        "HF_HOME": str(place / "home" / "hf"),
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": PYTHONPATH,
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
