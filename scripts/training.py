"""Define the commands that train: their options are the keys of a recipe, and they print a summary of the run."""

import os
import sys
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Any, Literal

import click

from safe_stepwise.commands.command import SETTINGS, BaseCommand, help_all, notes_of
from safe_stepwise.commands.values import Place
from safe_stepwise.errors import UserError
from safe_stepwise.store.tables import fill
from scripts.cli import note
from trainers import models
from trainers.config import Key, Recipe, keys, read_recipe
from trainers.run import train

EVERYDAY = ("dataset", "output")
_METAVARS = {int: "N", float: "X", Path: "DIR", bool: "{true,false}"}
_KEYS = "keys of a recipe (an option overrides the file)"


class TrainingCommand(BaseCommand):
    """A command that trains by a recipe; the keys of ``recipe_type`` are its options, ``about`` begins its help."""

    def __init__(self, name: str, about: str | None, recipe_type: type[Recipe]) -> None:
        super().__init__(name, help=about, context_settings=SETTINGS)
        self.recipe_type, self.notes = recipe_type, notes_of(Path(__file__), name)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if not self.params:
            help_text = "a recipe: a file of trainers/recipes, each of which says what it is for, or your own"
            config = click.Option(["--config"], type=Place(), metavar="FILE", help=help_text)
            resume = click.Option(["--resume"], is_flag=True, help="go on from the last complete checkpoint, if any")
            self.params = [config, resume, *map(_make_option, keys(self.recipe_type)), help_all()]
        return super().get_params(ctx)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["--config FILE --dataset DIR --output DIR [--resume] [--KEY VALUE ...]"]

    def parsed_values(self, ctx: click.Context) -> tuple[Path | None, dict[str, str], bool]:
        """Return the recipe file, values of keys and whether to resume."""
        values = {key.name: ctx.params[_param_name(key)] for key in keys(self.recipe_type)}
        options = {name: value for name, value in values.items() if value is not None}
        return ctx.params["config"], options, ctx.params["resume"]

    def invoke(self, ctx: click.Context) -> None:
        config, options, resume = self.parsed_values(ctx)
        is_first = int(os.environ.get("RANK", 0)) == 0  # of several processes, one prints
        try:
            recipe = read_recipe(config, options, self.recipe_type)
            record = train(recipe, resume, note)
        except UserError:
            if is_first:
                raise
            raise SystemExit(2) from None
        except KeyboardInterrupt:
            if is_first:
                print(f"interrupted; {'the same command' if resume else '--resume'} goes on", file=sys.stderr)
            raise SystemExit(130) from None
        if is_first:
            print(render_summary(record, recipe.output))


def _param_name(key: Key) -> str:
    return key.name.replace(".", "__")


def _make_option(key: Key) -> click.Option:
    spellings = {f"--{key.name}", f"--{key.name.replace('_', '-')}"}
    settings: dict[str, Any] = {"is_flag": False, "flag_value": "true"} if key.type is bool else {}
    declarations = [*sorted(spellings), _param_name(key)]
    option = click.Option(declarations, metavar=_make_metavar(key.type), help=_make_help(key), **settings)
    option.group = "everyday" if key.name in EVERYDAY else _KEYS  # type: ignore[attr-defined]
    return option


def _make_metavar(value_type: Any) -> str:
    """Return the placeholder for a value of a type in the help: all choices, or a word.

    >>> _make_metavar(Literal["sft", "kto"] | None), _make_metavar(tuple[str, ...]), _make_metavar(int)
    ('{sft,kto}', 'TEXT,...', 'N')
    """
    origin, inner = typing.get_origin(value_type), typing.get_args(value_type)
    if origin in (typing.Union, types.UnionType):
        return _make_metavar(next(hint for hint in inner if hint is not type(None)))
    if origin is Literal:
        return f"{{{','.join(inner)}}}"
    return f"{_make_metavar(inner[0])},..." if origin is tuple else _METAVARS.get(value_type, "TEXT")


def _make_help(key: Key) -> str:
    default: Any = key.default
    if isinstance(default, bool):
        default = str(default).lower()
    elif default is MISSING or default in (None, ()):
        default = "needed" if default is MISSING else "not set"
    return f"{key.help} ({default})"


def render_summary(record: Mapping[str, Any], output: Path) -> str:
    """Render rows, duration and losses of a run (by its ``training.json``), and how to load the result."""
    measured = [name.removesuffix("_before") for name in record["held_out"] if name.endswith("_before")]
    values = {"record": record, "run": record["run"], "measured": measured}
    folder = Path(models.__file__).parent
    return fill(folder, "summary.jinja", **values, output=output, model=output / models.MODEL).rstrip()
