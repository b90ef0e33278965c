"""A recipe's keys as options, in a help that lists what each takes; no command itself."""

import argparse
import dataclasses
import re
import textwrap
import types
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from safe_stepwise.errors import UserError
from scripts.cli import command
from trainers.config import Key, Recipe, keys, known_key

RECIPES = Path(__file__).parents[1] / "trainers" / "recipes"
_USAGE = "%(prog)s --config FILE --dataset DIR --output DIR [--resume] [--KEY VALUE ...]"
_WORDS = {int: "N", float: "X", Path: "DIR", bool: "{true,false}"}


def read_options(
    name: str, description: str, of: type[Recipe], arguments: Sequence[str]
) -> tuple[Path | None, dict[str, str], bool]:
    """The recipe's file, what takes the place of its keys, and whether to go on with a run."""
    parser = command(name, f"{description}\n\nrecipes:\n{_recipes(name)}")
    parser.argument_default, parser.allow_abbrev = argparse.SUPPRESS, False
    parser.usage = _USAGE
    add = parser.add_argument
    add("--config", type=Path, metavar="FILE", help="a recipe: one of those above, or your own")
    add("--resume", action="store_true", help="go on from the last complete checkpoint, if any")
    group = parser.add_argument_group("keys of a recipe (an option takes the place of the file's)")
    names = [key.name for key in keys(of)]
    for key in keys(of):
        spellings = {f"--{key.name}", f"--{key.name.replace('_', '-')}"}
        told: dict[str, Any] = {"dest": key.name, "metavar": _takes(key.type), "help": _help(key)}
        if key.type is bool:
            told |= {"nargs": "?", "const": "true"}
        group.add_argument(*sorted(spellings), **told)
    found, unknown = parser.parse_known_args(arguments)
    if unknown:
        asked = unknown[0].partition("=")[0]
        if asked.startswith("--"):
            known_key(asked.lstrip("-").replace("-", "_"), names, asked)
        raise UserError(f"{unknown[0]!r} belongs to no option; see {parser.prog} --help")
    options = vars(found)
    return options.pop("config", None), options, options.pop("resume", False)


def recipes(name: str) -> Iterator[Path]:
    """The recipes of ours that a command is for: those that show it in their first lines."""
    for file in sorted(RECIPES.glob("*.yaml")):
        if re.search(rf"(-m scripts\.|safe-stepwise ){name} ", file.read_text(encoding="utf-8")):
            yield file


def _recipes(name: str) -> str:
    """Each with what the file says of itself, up to the command that it shows."""
    told = []
    for file in recipes(name):
        lines = file.read_text(encoding="utf-8").partition("\n#   ")[0].splitlines()
        said = " ".join(line.removeprefix("# ") for line in lines)
        told.append(f"  {file.relative_to(RECIPES.parents[1])}")
        told.append(textwrap.indent(textwrap.fill(said, 90), " " * 6))
    return "\n".join(told)


def _takes(type_: Any) -> str:
    """What stands after an option: all choices, where there are some.

    >>> _takes(Literal["sft", "kto"] | None), _takes(tuple[str, ...]), _takes(int)
    ('{sft,kto}', 'TEXT,...', 'N')
    """
    origin, inner = typing.get_origin(type_), typing.get_args(type_)
    if origin in (typing.Union, types.UnionType):
        return _takes(next(one for one in inner if one is not type(None)))
    if origin is Literal:
        return f"{{{','.join(inner)}}}"
    return f"{_takes(inner[0])},..." if origin is tuple else _WORDS.get(type_, "TEXT")


def _help(key: Key) -> str:
    default: Any = key.default
    if default is dataclasses.MISSING:
        said = "needed"
    elif default is None or default == ():
        said = "not set"
    else:
        said = str(default).lower() if isinstance(default, bool) else str(default)
    return f"{key.help} ({said})".replace("%", "%%")
