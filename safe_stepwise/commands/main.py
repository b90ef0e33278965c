"""The command ``safe-stepwise``: what the package can do alone, and in a checkout all the rest.

A checkout's commands are those of its folder ``scripts``, with the same options. An installed wheel
has none of them, and says of each what a checkout adds.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import click
import yaml
from click.shell_completion import CompletionItem

from safe_stepwise import __version__
from safe_stepwise.commands import command
from safe_stepwise.commands.command import NAME, SETTINGS
from safe_stepwise.commands.ending import EXIT_STATUS, run
from safe_stepwise.errors import UserError, checkout, one_of

_KNOWN: Mapping[str, Mapping[str, str]] = yaml.safe_load(
    Path(__file__).with_name("commands.yaml").read_text(encoding="utf-8")
)
OWN = _KNOWN["package"]
"""What each command of the package does, by name; each is a file here of that name."""
BEYOND = _KNOWN["checkout"]
"""What each command does that a checkout adds."""


class Commands(click.Group):
    """The group of all commands, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*OWN, *BEYOND]

    def get_command(self, ctx: click.Context, name: str) -> click.Command:
        own, beside = name.replace("_", "-"), name.replace("-", "_")
        if own in OWN:
            place = f"{__package__}.{own.replace('-', '_')}"
        else:
            place = f"scripts.{one_of(beside, [*OWN, *BEYOND], 'the command')}"
            _find_scripts(beside)
        found: click.Command = import_module(place).main
        return found

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        known = {**OWN, **BEYOND}  # importing each command, as click does, takes seconds
        return [CompletionItem(name, help=does) for name, does in known.items() if name.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(OWN.items()))
        with formatter.section("In this checkout" if checkout() else "A checkout adds"):
            formatter.write_dl(list(BEYOND.items()))


def _find_scripts(name: str) -> None:
    """Make a checkout's commands importable; raises ``UserError`` in an installed package."""
    root = checkout()
    if root is None:
        raise UserError(
            f"{name} needs a checkout of safe-stepwise ({BEYOND[name]}): get the source, and "
            f"`pip install -e .` in it; this is the installed package, whose commands are "
            f"{', '.join(OWN)}"
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))


@click.group(cls=Commands, name=NAME, epilog=EXIT_STATUS[0].upper() + EXIT_STATUS[1:], context_settings=SETTINGS)
@click.version_option(__version__, prog_name=NAME)
def group() -> None:
    """Multi-hop answers verified step by step: the commands of the SAFE release toolkit.

    safe-stepwise COMMAND --help says what a command takes.
    """


def carry_out(arguments: Sequence[str]) -> None:
    """Carry out a command line; raises ``UserError`` for what the user can mend."""
    if "_SAFE_STEPWISE_COMPLETE" in os.environ:
        group(prog_name=NAME)  # a shell asks what could stand next
    command.carry_out(group, list(arguments) or ["--help"], NAME)


def main() -> NoReturn:
    """The console command."""
    run(carry_out)


if __name__ == "__main__":
    main()
