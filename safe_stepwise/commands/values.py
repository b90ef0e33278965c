"""Click's types for the values of options: numbers in bounds, names from a list, lists, values by role.

Fields of these types keep the bounds of their numbers where a file fills them, too (`store.boundary`).
"""

import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click

from safe_stepwise.errors import check_choice
from safe_stepwise.store.names import check_version
from safe_stepwise.store.opening import special_kind

LARGEST = 10**12
"""The largest whole number that an option accepts."""


@dataclass(frozen=True)
class Number(click.ParamType[Any]):
    """A number between two bounds; the error for any other value says that it is not ``description``."""

    kind: Callable[[str], float]
    description: str
    minimum: float = 0
    maximum: float = sys.float_info.max
    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._bounded(self.kind(value))
        except ValueError:
            self.fail(f"{value[:40]!r} is not {self.description}", param, ctx)

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self._bounded, handler(source))

    def _bounded(self, number: float) -> float:
        if not self.minimum <= number <= self.maximum:
            raise ValueError(f"has to be {self.description}")
        return number


def digits(text: str) -> int:
    """Parse a whole number; raises ``ValueError`` unless it is ASCII digits, ``BadParameter`` above `LARGEST`."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    number = int(text.lstrip("0")[:40] or "0")
    if number > LARGEST:
        raise click.BadParameter(f"{text[:40]!r} is too large: at most {LARGEST:,}")
    return number


COUNT = Number(digits, "a whole number from 1 on", 1)
Count = Annotated[int, COUNT]
Port = Annotated[int, Number(digits, "a valid integer from 0 to 65535", 0, 65535)]
NATURAL = Number(digits, "a whole number from 0 on")
"""The type of plain ``int`` fields: a seed, a count that may be 0."""
Natural = Annotated[int, NATURAL]
Share = Annotated[float, Number(float, "a share from 0 to 1, like 0.34", 0, 1)]
Part = Annotated[float, Number(float, "a share above 0 and below 1", sys.float_info.min, math.nextafter(1, 0))]
Version = Annotated[str, check_version]
Price = Annotated[float, Number(float, "an amount from 0 on")]
Seconds = Annotated[float, Number(float, "a number of seconds, above 0 and up to 86,400", sys.float_info.min, 86_400)]


@dataclass(frozen=True)
class Name(click.ParamType[Any]):
    """One of several names; any other raises ``UserError`` with the nearest one."""

    names: Sequence[str] | Mapping[str, Any]
    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return check_choice(value, self.names, spelling(param))


@dataclass(frozen=True)
class Commas(click.ParamType[Any]):
    """A comma-separated list: whole numbers from ``minimum`` on, or some of ``names``."""

    minimum: int = 0
    names: Sequence[str] = ()
    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        items = [item.strip() for item in value.split(",")]
        if self.names:
            return [check_choice(item, self.names, spelling(param)) for item in items]
        try:
            numbers = sorted({digits(item) for item in items})
        except ValueError:
            numbers = [-1]
        if numbers[0] < self.minimum:
            self.fail(f"{value!r} is not a list of numbers from {self.minimum} on", param, ctx)
        return numbers


@dataclass(frozen=True)
class ByRole(click.ParamType[Any]):
    """A value for one role, ``ROLE=VALUE``, or for all roles."""

    roles: Sequence[str]
    value: click.ParamType[Any]
    name = "by role"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[tuple[str, Any]]:
        role, equals, text = value.rpartition("=")
        roles = [check_choice(role, self.roles, spelling(param))] if equals else self.roles
        parsed = self.value.convert(text, param, ctx)
        return [(role, parsed) for role in roles]


@dataclass(frozen=True)
class ExampleRoles(click.ParamType[Any]):
    """The roles whose prompts show examples: names of ``roles``, ``all`` or ``none``; ``NAME=N`` shows the first N."""

    roles: Sequence[str]
    name = "roles"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Sequence[str]:
        choices, chosen = (*self.roles, "all", "none"), list[str]()
        for name, equals, number in (part.strip().partition("=") for part in value.split(",")):
            check_choice(name, choices, spelling(param))
            if equals and (name == "none" or not number.isdecimal()):
                self.fail(f"{name}={number}: write {name}=N, N being a number of examples", param, ctx)
            if name == "none" and value.strip() != "none":
                self.fail("none goes with no other", param, ctx)
            chosen += [f"{role}{equals}{number}" for role in (self.roles if name == "all" else [name])]
        return [role for role in chosen if role != "none"]


class Choice(click.Choice[str]):
    """One of a few words, converted to the value that ``values`` has for it."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__([*values])
        self._values = values

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self._values[super().convert(value, param, ctx)]

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        return f"invalid choice: {value!r} (choose from {', '.join(map(repr, self.choices))})"


class Place(click.Path):
    """A path that need not exist; refuses pipes, sockets and devices, except those of the shell and ``/dev/null``."""

    def __init__(self) -> None:
        super().__init__(readable=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if kind := special_kind(os.fspath(value)):
            self.fail(f"{os.fspath(value)!r} is {kind}, not a file or folder", param, ctx)
        return super().convert(value, param, ctx)


def spelling(param: click.Parameter | None) -> str:
    """Return the long form of an option, such as ``--limit``; "" without an option."""
    return param.opts[-1] if param else ""
