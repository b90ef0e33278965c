"""The command ``safe-stepwise``: it runs the package's commands, and in a checkout those of the folder ``scripts``.

An installed wheel has no scripts; its help says which commands a checkout adds.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import click
from click.shell_completion import CompletionItem

from safe_stepwise import __version__
from safe_stepwise.commands import command
from safe_stepwise.commands.command import NAME, SETTINGS
from safe_stepwise.commands.ending import EXIT_STATUS, run
from safe_stepwise.errors import UserError, check_choice, checkout, require_modules
from safe_stepwise.store.packaged import read_yaml
from safe_stepwise.store.tables import fill

_COMMANDS: Mapping[str, Mapping[str, str]] = read_yaml(Path(__file__).with_name("commands.yaml"))
PACKAGE_COMMANDS = _COMMANDS["package"]
"""The summary of each command of the package, by name; each is a file here of that name."""
CHECKOUT_COMMANDS = _COMMANDS["checkout"]
"""The summary of each command that only a checkout has, by name."""


class Commands(click.Group):
    """The group of all commands, each imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*PACKAGE_COMMANDS, *CHECKOUT_COMMANDS]

    def get_command(self, ctx: click.Context, name: str) -> click.Command:
        spelling, script = name.replace("_", "-"), name.replace("-", "_")
        if spelling in PACKAGE_COMMANDS:
            module = f"{__package__}.{spelling.replace('-', '_')}"
        else:
            module = f"scripts.{check_choice(script, [*PACKAGE_COMMANDS, *CHECKOUT_COMMANDS], 'the command')}"
            _find_scripts(script)
        loaded: click.Command = import_module(module).main
        return loaded

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        summaries = {**PACKAGE_COMMANDS, **CHECKOUT_COMMANDS}  # importing each command, as click does, takes seconds
        return [CompletionItem(name, help=does) for name, does in summaries.items() if name.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(PACKAGE_COMMANDS.items()))
        with formatter.section("In this checkout" if checkout() else "A checkout adds"):
            formatter.write_dl(list(CHECKOUT_COMMANDS.items()))


def _find_scripts(name: str) -> None:
    """Make a checkout's commands importable; raises ``UserError`` in an installed package."""
    if (root := checkout()) is None:
        raise UserError(
            f"{name} needs a checkout of safe-stepwise ({CHECKOUT_COMMANDS[name]}): get the source, and "
            f"`pip install -e .` in it; this is the installed package, whose commands are "
            f"{', '.join(PACKAGE_COMMANDS)}"
        )
    modules = ("datasets", "evaluate", "matplotlib", "pyarrow", "sklearn")
    require_modules(name, "what builds and reports need", "metric,build,report", *modules)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))


@click.group(cls=Commands, name=NAME, epilog=EXIT_STATUS[0].upper() + EXIT_STATUS[1:], context_settings=SETTINGS)
@click.version_option(__version__, prog_name=NAME)
def group() -> None:
    """Multi-hop answers verified step by step: the commands of the SAFE release toolkit.

    safe-stepwise COMMAND --help says what a command takes.
    """


def first_steps() -> str:
    """Return what to try first: three commands that need no model, and where the others are."""
    folder = Path(__file__).with_name("templates")
    return fill(folder, "first_steps.txt.jinja", name=NAME, is_checkout=checkout() is not None).rstrip("\n")


def carry_out(arguments: Sequence[str]) -> None:
    """Run a command line; raises ``UserError`` for a mistake in it."""
    if "_SAFE_STEPWISE_COMPLETE" in os.environ:
        group(prog_name=NAME)  # a shell wants completions
    if arguments:
        command.carry_out(group, list(arguments), NAME)
    else:
        print(first_steps())


def main() -> NoReturn:
    """Run the console command and exit."""
    run(carry_out)


if __name__ == "__main__":
    main()
