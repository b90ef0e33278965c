"""Define the commands that train: their options are the keys of a recipe, and they print a summary of the run."""

import os
import re
import shutil
import sys
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

from safe_stepwise.commands.command import SETTINGS, BaseCommand, help_all, notes_of
from safe_stepwise.commands.values import Place
from safe_stepwise.engines.weights import Model, find_adapter
from safe_stepwise.errors import UserError
from scripts.cli import note
from trainers import checkpoints, models
from trainers.config import Key, Recipe, keys, read_recipe
from trainers.record import RECORD
from trainers.rows.base import fingerprint, kind_of
from trainers.run import train

RECIPES = Path(__file__).parents[1] / "trainers" / "recipes"
EVERYDAY = ("dataset", "output")
R = TypeVar("R", bound=Recipe)
_METAVARS = {int: "N", float: "X", Path: "DIR", bool: "{true,false}"}


class TrainingCommand(BaseCommand):
    """A command that trains by a recipe; the keys of ``recipe_type`` are its options, ``about`` begins its help."""

    def __init__(self, name: str, about: str | None, recipe_type: type[Recipe]) -> None:
        text = f"{about}\n\n\b\nrecipes:\n{_recipe_list(name)}"
        super().__init__(name, help=text, context_settings=SETTINGS)
        self.recipe_type, self.notes = recipe_type, notes_of(Path(__file__), name)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if not self.params:
            help_text = "a recipe: one of those above, or your own"
            config = click.Option(["--config"], type=Place(), metavar="FILE", help=help_text)
            resume = click.Option(["--resume"], is_flag=True, help="go on from the last complete checkpoint, if any")
            self.params = [config, resume, *map(_option, keys(self.recipe_type)), help_all()]
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


def find_recipes(name: str) -> Iterator[Path]:
    """Yield the files of our recipes that mention the command of this name (in the usage at their top)."""
    for file in sorted(RECIPES.glob("*.yaml")):
        if re.search(rf"(-m scripts\.|safe-stepwise ){name} ", file.read_text(encoding="utf-8")):
            yield file


def _recipe_list(name: str) -> str:
    """List the recipes of a command, each with the remarks at its top."""
    lines = []
    for file in find_recipes(name):
        remarks = file.read_text(encoding="utf-8").partition("\n#   ")[0].splitlines()
        text = " ".join(line.removeprefix("# ") for line in remarks)
        lines.append(f"  {file.relative_to(RECIPES.parents[1])}")
        lines.append(textwrap.indent(textwrap.fill(text, 90), " " * 6))
    return "\n".join(lines)


def _param_name(key: Key) -> str:
    return key.name.replace(".", "__")


def _option(key: Key) -> click.Option:
    spellings = {f"--{key.name}", f"--{key.name.replace('_', '-')}"}
    settings: dict[str, Any] = {"is_flag": False, "flag_value": "true"} if key.type is bool else {}
    declarations = [*sorted(spellings), _param_name(key)]
    option = click.Option(declarations, metavar=_metavar(key.type), help=_help(key), **settings)
    option.group = "everyday" if key.name in EVERYDAY else _KEYS  # type: ignore[attr-defined]
    return option


_KEYS = "keys of a recipe (an option overrides the file)"


def _metavar(value_type: Any) -> str:
    """Return the placeholder for a value of a type in the help: all choices, or a word.

    >>> _metavar(Literal["sft", "kto"] | None), _metavar(tuple[str, ...]), _metavar(int)
    ('{sft,kto}', 'TEXT,...', 'N')
    """
    origin, inner = typing.get_origin(value_type), typing.get_args(value_type)
    if origin in (typing.Union, types.UnionType):
        return _metavar(next(hint for hint in inner if hint is not type(None)))
    if origin is Literal:
        return f"{{{','.join(inner)}}}"
    return f"{_metavar(inner[0])},..." if origin is tuple else _METAVARS.get(value_type, "TEXT")


def _help(key: Key) -> str:
    default: Any = key.default
    if isinstance(default, bool):
        default = str(default).lower()
    elif default is MISSING or default in (None, ()):
        default = "needed" if default is MISSING else "not set"
    return f"{key.help} ({default})"


def render_summary(record: Mapping[str, Any], output: Path) -> str:
    """Render rows, duration and losses of a run (by its ``training.json``), and how to load the result."""
    run, curve, held_out = record["run"], record["curve"], record["held_out"]
    memory = run["peak_memory_bytes"] / 2**30
    lines = [
        f"{record['dataset']['rows']:,} rows, {run['steps']:,} steps of "
        f"{record['recipe']['effective_batch']} in {run['seconds']:,.0f} s "
        f"({run['seconds_per_step']:.1f} s a step, {memory:.1f} GiB at most, {run['device']})",
        f"loss {curve[0]['loss']:.4f} at the first step, {curve[-1]['loss']:.4f} at the last",
    ]
    measured = [name.removesuffix("_before") for name in held_out if name.endswith("_before")]
    if held_out["rows"]:
        changes = (f"{n} {held_out[f'{n}_before']:.4f} before, {held_out[f'{n}_after']:.4f} after" for n in measured)
        lines.append(f"{held_out['rows']} held-out rows: {'; '.join(changes)}")
    if long := len(record["dataset"]["dropped_as_long"]):
        lines.append(f"left out as too long: {long:,} rows (ids in training.json)")
    base = record["base_model"]["name"]
    if "model" in record:
        return "\n".join([*lines, f"\n{output / models.MODEL}", f"\ntransformers:{output / models.MODEL}"])
    return "\n".join([*lines, f"\n{output}", f'\nPeftModel.from_pretrained(<{base}>, "{output}")'])


def train_or_reuse(file: Path, values: Mapping[str, str], kind: type[R]) -> tuple[R, str]:
    """Train by a recipe file and overriding values, or reuse the result of that training; return recipe, summary."""
    recipe = read_recipe(file, values, kind)
    remove_outdated(recipe)
    return recipe, render_summary(train(recipe, resume=True, warn=note), recipe.output)


def remove_outdated(recipe: Recipe) -> None:
    """Delete an output folder that `--resume` would refuse: trained on other rows, or by another start or recipe."""
    file = recipe.output / RECORD
    if not file.is_file():
        return
    record = checkpoints.read_json(file)
    rows = kind_of(recipe).open(recipe.dataset, "train", recipe.filters)[1]
    path_keys = ("base_model", "dataset", "output", "start")
    is_same = all(record["recipe"].get(k) == v for k, v in recipe.plain().items() if k not in path_keys)
    if recipe.start is not None:
        is_same &= record["start"]["revision"] == find_adapter(Model.read(recipe.start)).revision
    if not is_same or record["dataset"]["sha256"] != fingerprint(rows):
        shutil.rmtree(recipe.output)
