"""What the value of an option may be, beyond its Python type: bounds, known names, lists, roles."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click

from safe_stepwise.errors import one_of
from safe_stepwise.store.names import known_version
from safe_stepwise.store.opening import special_kind

LARGEST = 10**12
"""Of whole numbers: more than anybody counts here, and what every file, seed and clock holds."""


@dataclass(frozen=True)
class Number(click.ParamType[Any]):
    """A number between two bounds; ``what`` is said of any other value."""

    kind: Callable[[str], float]
    what: str
    least: float = 0
    most: float = sys.float_info.max
    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            number = self.kind(value)
        except ValueError:
            number = -1
        if not self.least <= number <= self.most:
            self.fail(f"{value[:40]!r} is not {self.what}", param, ctx)
        return number


def digits(text: str) -> int:
    """A whole number of plain digits; raises ``ValueError`` for anything else, and a click error beyond `LARGEST`."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    number = int(text.lstrip("0")[:40] or "0")
    if number > LARGEST:
        raise click.BadParameter(f"{text[:40]!r} is too large: at most {LARGEST:,}")
    return number


COUNT = Number(digits, "a whole number from 1 on", 1)
Count = Annotated[int, COUNT]
Port = Annotated[int, Number(digits, "a valid integer from 0 to 65535", 0, 65535)]
WHOLE = Number(digits, "a whole number from 0 on")
"""What every whole number is that nothing else is said of: a seed, a count that may be none."""
Whole = Annotated[int, WHOLE]
Share = Annotated[float, Number(float, "a share from 0 to 1, like 0.34", 0, 1)]
Version = Annotated[str, known_version]
Price = Annotated[float, Number(float, "an amount from 0 on")]
Seconds = Annotated[float, Number(float, "a number of seconds, above 0 and up to 86,400", sys.float_info.min, 86_400)]


@dataclass(frozen=True)
class Known(click.ParamType[Any]):
    """One of some names; ``UserError`` with the nearest for any other."""

    names: Sequence[str] | Mapping[str, Any]
    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return one_of(value, self.names, spelling(param))


@dataclass(frozen=True)
class Commas(click.ParamType[Any]):
    """Values with commas between them: whole numbers from ``least`` on, or some of ``names``."""

    least: int = 0
    names: Sequence[str] = ()
    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        parts = [part.strip() for part in value.split(",")]
        if self.names:
            return [one_of(part, self.names, spelling(param)) for part in parts]
        try:
            numbers = sorted({digits(part) for part in parts})
        except ValueError:
            numbers = [-1]
        if numbers[0] < self.least:
            self.fail(f"{value!r} is not a list of numbers from {self.least} on", param, ctx)
        return numbers


@dataclass(frozen=True)
class ByRole(click.ParamType[Any]):
    """A value for one of some roles, ``ROLE=VALUE``, or for all of them."""

    roles: Sequence[str]
    value: click.ParamType[Any]
    name = "by role"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[tuple[str, Any]]:
        role, named, text = value.rpartition("=")
        roles = [one_of(role, self.roles, spelling(param))] if named else self.roles
        said = self.value.convert(text, param, ctx)
        return [(role, said) for role in roles]


@dataclass(frozen=True)
class Shown(click.ParamType[Any]):
    """Roles that are to be shown examples: some of those known, all or none."""

    roles: Sequence[str]
    name = "roles"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Sequence[str]:
        named = [one_of(role.strip(), (*self.roles, "all", "none"), spelling(param)) for role in value.split(",")]
        if "none" in named and len(named) > 1:
            self.fail("none goes with no other", param, ctx)
        return self.roles if "all" in named else [role for role in named if role != "none"]


class Choice(click.Choice[str]):
    """One of a few words, or what ``values`` say that it stands for."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__([*values])
        self._values = values

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self._values[super().convert(value, param, ctx)]

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        return f"invalid choice: {value!r} (choose from {', '.join(map(repr, self.choices))})"


class Place(click.Path):
    """A file or folder, there or not; ``UserError`` for a pipe, a socket or a device, which may never end.

    What the shell opened is read and written as ever (``/dev/stdin``, ``<(command)``), and so is ``/dev/null``.
    """

    def __init__(self) -> None:
        super().__init__(readable=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if kind := special_kind(os.fspath(value)):
            self.fail(f"{os.fspath(value)!r} is {kind}, not a file or folder", param, ctx)
        return super().convert(value, param, ctx)


def spelling(param: click.Parameter | None) -> str:
    """How an option is written."""
    return param.opts[-1] if param else ""
