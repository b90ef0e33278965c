"""Makes a command of a function: the command line fills the dataclass that the function takes.

``main = command(build)`` in a script ``NAME.py`` takes its options from the type of the function's parameter and their
help from ``help/NAME.yaml`` in the folder of the script; ``help/NAME.txt`` has the end of the help. The command prints
the text that the function returns.
"""

import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_type_hints

import click

from safe_stepwise.commands.options import EVERYDAY, CommandLine, read_option_specs
from safe_stepwise.errors import UserError, check_choice

NAME = "safe-stepwise"
_ALL = f"{__name__}.all"
Action = Callable[[Any], str | None]
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class BaseCommand(click.Command):
    """A command that is called with a list of arguments; its help ends with its ``notes``."""

    notes: str = ""

    def __call__(self, arguments: Sequence[str]) -> None:
        """Run the command and exit after ``--help``; raises ``UserError`` for a mistake in the command line."""
        if carry_out(self, arguments, f"{NAME} {self.name}"):
            raise SystemExit(0)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spellings = {arg.partition("=")[0] for arg in args}
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            required = (p for p in self.get_params(ctx) if p.required and isinstance(p, click.Option))
            missing = [f"'{param.opts[0]}'" for param in required if spellings.isdisjoint(param.opts)]
            if isinstance(error, click.MissingParameter) and len(missing) > 1:
                raise click.UsageError(f"missing options {', '.join(missing)}", ctx) from None
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {EVERYDAY: []}
        for param in self.get_params(ctx):
            record = None if isinstance(param, click.Argument) else param.get_help_record(ctx)
            if record and (_group(param) == EVERYDAY or _shows_all(ctx)):
                groups.setdefault(_group(param), []).append(record)
        for group, records in groups.items():
            with formatter.section("Options" if group == EVERYDAY else group[:1].upper() + group[1:]):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        blocks = self.notes.strip("\n").split("\n\n")
        if not _shows_all(ctx) and any(_group(param) != EVERYDAY for param in self.get_params(ctx)):
            blocks = [blocks[0], blocks[-1]]
        formatter.write("\n" + "\n\n".join(blocks) + "\n")


class Group(BaseCommand, click.Group):
    """A group of commands under one name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        check_choice(args[0], self.commands, "command")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


class Command(BaseCommand):
    """A command whose options fill the dataclass that its function (``action``) takes."""

    def __init__(self, name: str, action: Action, line: CommandLine, about: str, notes: str) -> None:
        super().__init__(name, help=about, context_settings=SETTINGS)
        self.action, self.line, self.notes = action, line, notes

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if not self.params:
            self.params = [*self.line.params(), help_all()]
        return super().get_params(ctx)

    def invoke(self, ctx: click.Context) -> None:
        default = click.core.ParameterSource.DEFAULT
        values = {name: value for name, value in ctx.params.items() if ctx.get_parameter_source(name) is not default}
        if (text := self.action(self.line.fill(values))) is not None:
            print(text)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        params = self.get_params(ctx)
        required = (p for p in params if p.required and isinstance(p, click.Option))
        arguments = (piece for p in params for piece in p.get_usage_pieces(ctx))
        return [*(f"{p.opts[0]} {p.make_metavar(ctx)}" for p in required), "[OPTIONS]", *arguments]


def command(
    action: Action,
    name: str = "",
    roles: Sequence[str] = (),
    example_roles: Sequence[str] = (),
    module: str = "",
    **defaults: Any,
) -> Command:
    """Make the command that fills the parameter of ``action`` and calls it.

    ``name`` is by default that of the script; two words name a command of a group. The options may set tokens and
    effort for ``roles``, and worked examples for ``example_roles``; ``defaults`` replace the fields' defaults.
    ``module`` is the name of the script, if the action is in another module.
    """
    # The globals are looked up, as a script that another one runs is in no module of `sys.modules`.
    script = vars(sys.modules[module]) if module else action.__globals__
    source = Path(str(script["__file__"]))
    names = (name or source.stem).split()
    (kind,) = (hint for parameter, hint in get_type_hints(action).items() if parameter != "return")
    file = source.with_name("help") / f"{'_'.join(names).replace('-', '_')}.yaml"
    line = CommandLine(kind, read_option_specs(file), roles, example_roles, defaults)
    doc = action.__doc__ if len(names) > 1 else script["__doc__"]
    return Command(names[-1], action, line, (doc or "").partition("\n")[0], notes_of(source, names[0]))


def group(name: str, *commands: Command) -> Group:
    """Make a group with a name of several commands, all of one file."""
    action = commands[0].action
    words: dict[str, Any] = {"help": action.__globals__["__doc__"], "no_args_is_help": False}
    members = Group(name, [*commands], params=[help_all()], context_settings=SETTINGS, **words)
    members.notes = notes_of(Path(inspect.getfile(action)), name)
    return members


def notes_of(source: Path, name: str) -> str:
    """Read the notes at the end of a command's help: ``help/NAME.txt`` in the folder of its ``source``."""
    return source.with_name("help").joinpath(f"{name.replace('-', '_')}.txt").read_text(encoding="utf-8")


def carry_out(target: click.Command, arguments: Sequence[str], name: str) -> bool:
    """Run a command; return True if it only printed help. Raises ``UserError`` for a mistake of the user."""
    try:
        with target.make_context(name, [*arguments]) as ctx:
            target.invoke(ctx)
    except click.exceptions.Exit:
        return True
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else name
        raise UserError(f"{_complaint(error)}; see {path} --help") from None
    except click.ClickException as error:
        raise UserError(error.format_message()) from None
    except click.Abort:
        raise KeyboardInterrupt from None
    return False


def _complaint(error: click.UsageError) -> str:
    if type(error) is click.BadParameter and error.param is not None:
        return f"argument {error.param.get_error_hint(error.ctx).strip(chr(39))}: {error.message.rstrip('.')}"
    message = error.format_message().rstrip(".")
    return f"{message[:1].lower()}{message[1:]}"


def help_all() -> click.Option:
    def show(ctx: click.Context, _: click.Parameter, is_set: bool) -> None:
        if is_set:
            ctx.meta[_ALL] = True
            click.echo(ctx.get_help())
            ctx.exit()

    words = "Show every option, and notes."
    return click.Option(["--help-all"], help=words, is_flag=True, is_eager=True, expose_value=False, callback=show)


def _group(param: click.Parameter) -> str:
    return getattr(param, "group", EVERYDAY)


def _shows_all(ctx: click.Context) -> bool:
    return bool(ctx.meta.get(_ALL))
