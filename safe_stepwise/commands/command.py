"""A command: what it is called with fills a dataclass, of which its function makes the rest.

``main = command(build)`` in a script ``NAME.py`` has its options from the type of the function's
parameter and their words from ``help/NAME.yaml`` beside the script; ``help/NAME.txt`` is the end of
its help. What the function returns is printed.
"""

import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_type_hints

import click

from safe_stepwise.commands.options import EVERYDAY, Line, read_words
from safe_stepwise.errors import UserError, one_of

NAME = "safe-stepwise"
_ALL = f"{__name__}.all"
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Called(click.Command):
    """A command that is called with a command line; its notes stand below its options in the help."""

    notes: str = ""

    def __call__(self, arguments: Sequence[str]) -> None:
        """Carry out a command line; raises ``UserError`` for what the user can mend."""
        if carry_out(self, arguments, f"{NAME} {self.name}"):
            raise SystemExit(0)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = {arg.partition("=")[0] for arg in args}
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            needed = (p for p in self.get_params(ctx) if p.required and isinstance(p, click.Option))
            missing = [f"'{param.opts[0]}'" for param in needed if given.isdisjoint(param.opts)]
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


class Group(Called, click.Group):
    """Several commands under one name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        one_of(args[0], self.commands, "command")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


class Command(Called):
    """A command whose options fill the dataclass that its function takes."""

    def __init__(self, name: str, action: Callable[[Any], str | None], line: Line, about: str, notes: str) -> None:
        super().__init__(name, help=about, context_settings=SETTINGS)
        self.action, self.line, self.notes = action, line, notes

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if not self.params:
            self.params = [*self.line.params(), help_all()]
        return super().get_params(ctx)

    def invoke(self, ctx: click.Context) -> None:
        usual = click.core.ParameterSource.DEFAULT
        given = {name: value for name, value in ctx.params.items() if ctx.get_parameter_source(name) is not usual}
        if (text := self.action(self.line.fill(given))) is not None:
            print(text)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        params = self.get_params(ctx)
        needed = (p for p in params if p.required and isinstance(p, click.Option))
        arguments = (piece for p in params for piece in p.get_usage_pieces(ctx))
        return [*(f"{p.opts[0]} {p.make_metavar(ctx)}" for p in needed), "[OPTIONS]", *arguments]


def command(
    action: Callable[[Any], str | None],
    name: str = "",
    roles: Sequence[str] = (),
    shown: Sequence[str] = (),
    module: str = "",
    **usual: Any,
) -> Command:
    """The command that fills the parameter of ``action`` and calls it; named as its file, if not said.

    ``roles`` are those that may be given tokens and effort, ``shown`` those with examples; ``usual``
    are values in the place of the fields' defaults. A name of two words is of a command in a group. ``module`` is the
    script's, if not that of the action.
    """
    # By its globals, as a script that was run by another has no module of its own.
    place = vars(sys.modules[module]) if module else action.__globals__
    source = Path(str(place["__file__"]))
    words = (name or source.stem).split()
    folder = source.with_name("help")
    (kind,) = (hint for parameter, hint in get_type_hints(action).items() if parameter != "return")
    file = folder / f"{'_'.join(words).replace('-', '_')}.yaml"
    line = Line(kind, read_words(file), roles, shown, usual)
    told = action.__doc__ if len(words) > 1 else place["__doc__"]
    return Command(words[-1], action, line, (told or "").partition("\n")[0], notes_of(source, words[0]))


def group(name: str, *commands: Command) -> Group:
    """Several commands of one file under its name."""
    action = commands[0].action
    about = action.__globals__["__doc__"]
    made = Group(name, [*commands], params=[help_all()], help=about, no_args_is_help=False, context_settings=SETTINGS)
    made.notes = notes_of(Path(inspect.getfile(action)), name)
    return made


def notes_of(source: Path, name: str) -> str:
    """What stands below the options in the help of a command, whose source is a file."""
    return source.with_name("help").joinpath(f"{name.replace('-', '_')}.txt").read_text(encoding="utf-8")


def carry_out(known: click.Command, arguments: Sequence[str], name: str) -> bool:
    """Carry out a command line; returns whether it only asked for help.

    Raises ``UserError`` for what the user can mend.
    """
    try:
        with known.make_context(name, [*arguments]) as ctx:
            known.invoke(ctx)
    except click.exceptions.Exit:
        return True
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else name
        raise UserError(f"{_complaint(error)}; see {where} --help") from None
    except click.ClickException as error:
        raise UserError(error.format_message()) from None
    except click.Abort:
        raise KeyboardInterrupt from None
    return False


def _complaint(error: click.UsageError) -> str:
    if type(error) is click.BadParameter and error.param is not None:
        return f"argument {error.param.get_error_hint(error.ctx).strip(chr(39))}: {error.message.rstrip('.')}"
    said = error.format_message().rstrip(".")
    return f"{said[:1].lower()}{said[1:]}"


def help_all() -> click.Option:
    """The option ``--help-all``."""

    def show(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
        if is_asked:
            ctx.meta[_ALL] = True
            click.echo(ctx.get_help())
            ctx.exit()

    how: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False, "callback": show}
    return click.Option(["--help-all"], help="Show every option, and notes.", **how)


def _group(param: click.Parameter) -> str:
    return getattr(param, "group", EVERYDAY)


def _shows_all(ctx: click.Context) -> bool:
    return bool(ctx.meta.get(_ALL))
