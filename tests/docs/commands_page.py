"""The page of commands: every command's own ``--help``, one after the other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from click.testing import CliRunner

from safe_stepwise.commands.main import CHECKOUT_COMMANDS, NAME, PACKAGE_COMMANDS, group

ROOT = Path(__file__).parents[2]
WIDTH = 100
HEAD = f"""\
# Commands

Built from each command's `--help-all`. `{NAME} COMMAND` works wherever the package is installed. The commands
below [Commands of a checkout](#commands-of-a-checkout) need the source; there, `python -m scripts.COMMAND`
does the same. `--help` shows the everyday options, `--help-all` shows all of them, and so does this page.
To complete names and options in bash, run `eval "$(_SAFE_STEPWISE_COMPLETE=bash_source {NAME})"` (zsh and fish
work the same way). Exit status: 0 done; 2 an error you can fix (explained in one line); 130 interrupted;
141 whoever reads the output (`head`) ended first; 1 a bug in {NAME}.
"""


def page() -> str:
    """The page as Markdown."""
    return "\n".join([HEAD, *_own(), *_checkout(), *_others()])


def of_scripts() -> list[str]:
    """The commands of a checkout: the order of `safe-stepwise --help`, then the demonstrations."""
    known = {file.stem for file in (ROOT / "scripts" / "help").glob("*.txt")}
    return [*(name for name in CHECKOUT_COMMANDS if name in known), *sorted(known - CHECKOUT_COMMANDS.keys())]


def help_of(name: str) -> str:
    """What ``safe-stepwise NAME --help-all`` prints, `WIDTH` columns wide."""
    told = CliRunner().invoke(
        group, [name, "--help-all"], prog_name=NAME, terminal_width=WIDTH, env={"COLUMNS": str(WIDTH)}
    )
    assert told.exit_code == 0, told.output
    return told.stdout


def _own() -> Iterator[str]:
    yield "## Commands of the package\n"
    yield from _table({f"{NAME} {name}": told for name, told in PACKAGE_COMMANDS.items()})
    for name in PACKAGE_COMMANDS:
        yield _section(f"{NAME} {name}", help_of(name))


def _checkout() -> Iterator[str]:
    yield "## Commands of a checkout\n"
    helps = {name: help_of(name) for name in of_scripts()}
    yield from _table({name: _told(said) for name, said in helps.items()})
    for name, said in helps.items():
        yield _section(name, said)


def _others() -> Iterator[str]:
    yield "## Other programs\n"
    lines = (ROOT / "Makefile").read_text("utf-8").partition("\n\n")[0]
    yield f"`make help` lists the targets of `make`:\n\n```text\n{lines.replace('# ', '')}\n```\n"
    yield "`scripts/serve.sh MODEL` starts vLLM with the settings that a teacher needs, on GPUs or a CPU.\n"
    found = sorted((ROOT / "tests" / "benchmarks").glob("bench_*.py"))
    yield from _table({f"python -m tests.benchmarks.{f.stem}": _first(f) for f in found})


def _table(told: dict[str, str]) -> Iterator[str]:
    yield "| command | does |\n| --- | --- |"
    for name, does in told.items():
        yield f"| `{name}` | {does[:1].lower()}{does[1:].rstrip('.')} |"
    yield ""


def _section(name: str, said: str) -> str:
    return f"### {name}\n\n```text\n{said.strip()}\n```\n"


def _told(said: str) -> str:
    """What a command does, as its help says it between usage and options."""
    return " ".join(said.split("\n\n")[1].split())


def _first(file: Path) -> str:
    """The first line of a module's docstring."""
    told = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return told.partition("\n")[0]
