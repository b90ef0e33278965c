"""The command ``safe-stepwise``: what the package can do alone, and in a checkout all the rest.

A checkout's commands are those of its folder ``scripts``, with the same options. An installed wheel
has none of them, and says of each what a checkout adds.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import click
import yaml

from safe_stepwise import __version__
from safe_stepwise.commands.ending import EXIT_STATUS, run
from safe_stepwise.errors import UserError, checkout, one_of

NAME = "safe-stepwise"
OWN: Mapping[str, str] = {
    "answer": "a verified answer to one question, with its steps",
    "check": "steps, each checked by its question's plan, without a model",
    "register": 'make evaluate.load("safe_stepwise") find the metric by its bare name',
    "score": "answers against references: exact match, F1, and accuracy with a judge",
    "serve": "an OpenAI-compatible endpoint that answers with the verified loop",
    "stand-in": "an OpenAI-compatible server without a model, to try things out",
    "traces": "what was tried, said and accepted, question by question, as text",
}
"""Those of the package; each is a file here of that name, with a function of that name."""
_PASSED_ON = {"ignore_unknown_options": True, "allow_extra_args": True}


@cache
def beyond() -> Mapping[str, str]:
    """What each command of a checkout does, by name."""
    file = Path(__file__).with_name("checkout.yaml")
    told: dict[str, str] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return told


class Commands(click.Group):
    """The group of all commands, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*OWN, *beyond()]

    def get_command(self, ctx: click.Context, name: str) -> click.Command:
        own, theirs = name.replace("_", "-"), name.replace("-", "_")
        if own in OWN:
            file = own.replace("-", "_")
            command: click.Command = getattr(import_module(f"{__package__}.{file}"), file)
            return command
        known = one_of(theirs, [*OWN, *beyond()], "the command")
        return click.Command(
            name,
            callback=lambda: _in_checkout(known, click.get_current_context().args),
            context_settings={**_PASSED_ON, "help_option_names": []},
        )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(OWN.items()))
        with formatter.section("In this checkout" if checkout() else "A checkout adds"):
            formatter.write_dl(list(beyond().items()))


def _in_checkout(name: str, arguments: Sequence[str]) -> None:
    """Carry out a command of the checkout with its own options."""
    root = checkout()
    if root is None:
        raise UserError(
            f"{name} needs a checkout of safe-stepwise ({beyond()[name]}): get the source, and "
            f"`pip install -e .` in it; this is the installed package, whose commands are "
            f"{', '.join(OWN)}"
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    import_module(f"scripts.{name}").main(list(arguments))


@click.group(
    cls=Commands,
    name=NAME,
    epilog=EXIT_STATUS[0].upper() + EXIT_STATUS[1:],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name=NAME)
def group() -> None:
    """Multi-hop answers verified step by step: the commands of the SAFE release toolkit.

    safe-stepwise COMMAND --help says what a command takes.
    """


def carry_out(arguments: Sequence[str]) -> None:
    """Carry out a command line; raises ``UserError`` for what the user can mend."""
    try:
        group.main(list(arguments) or ["--help"], prog_name=NAME, standalone_mode=False)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else NAME
        said = error.format_message().rstrip(".")
        raise UserError(f"{said[:1].lower()}{said[1:]}; see {where} --help") from None
    except click.ClickException as error:
        raise UserError(error.format_message()) from None
    except click.Abort:
        raise KeyboardInterrupt from None


def main() -> NoReturn:
    """The console command."""
    run(carry_out)


if __name__ == "__main__":
    main()
