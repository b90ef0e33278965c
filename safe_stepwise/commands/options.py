"""Options of a command, made from the fields of the dataclass that it fills.

A field's type says what a value may be; its words (option, metavar, help) stand in a YAML file of
the command, by group: those under ``everyday`` are shown by ``--help``, all by ``--help-all``. A
field without words is no option. The words ``--input SOURCE: {field: sources, help: ...}`` are of a
field of another name, ``loop.feedback`` of one within another; ``values`` are what texts stand for.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import click
import yaml

from safe_stepwise import prompts
from safe_stepwise.commands.values import COUNT, WHOLE, ByRole, Choice, Known, Place, Shown
from safe_stepwise.engines.base import EFFORTS, Allowance
from safe_stepwise.errors import UserError

EVERYDAY, SHARED = "everyday", "shared"
T = TypeVar("T")


@dataclass(frozen=True)
class Words:
    """What is written of an option: its spelling, metavar, help, group, and the field that it fills."""

    spelling: str
    metavar: str
    help: str
    group: str
    field: str
    values: Mapping[str, Any] | None = None

    @property
    def is_negated(self) -> bool:
        """Whether the option says no to its field."""
        return self.spelling.startswith("--no-") and not self.field.startswith("no_")

    @property
    def param(self) -> str:
        """The name by which click keeps the value."""
        return self.field.replace(".", "__")


@cache
def read_words(file: Path) -> Mapping[str, Words]:
    """The words of a file by field, with those of the groups of ``shared.yaml`` that it names."""
    groups = yaml.safe_load(file.read_text(encoding="utf-8"))
    wanted = groups.pop(SHARED, ())
    words = [_words(group, key, entry) for group, options in groups.items() for key, entry in options.items()]
    own = {entry.field: entry for entry in words}
    shared = read_words(file.with_name(f"{SHARED}.yaml")) if wanted else {}
    return own | {name: entry for name, entry in shared.items() if entry.group in wanted and name not in own}


def _words(group: str, key: str, entry: Any) -> Words:
    spelling, _, metavar = key.partition(" ")
    field = spelling.partition("/")[0].lstrip("-").replace("-", "_")
    return Words(
        **{
            "spelling": spelling,
            "metavar": metavar,
            "group": group,
            "field": field,
            **(entry if isinstance(entry, Mapping) else {"help": entry}),
        }
    )


@dataclass(frozen=True)
class Line:
    """A command line: the dataclass that it fills, what is written of its fields, and its roles."""

    kind: type
    words: Mapping[str, Words]
    roles: Sequence[str] = ()
    shown: Sequence[str] = ()
    usual: Mapping[str, Any] = field(default_factory=dict)
    """Values that take the place of the fields' defaults."""

    def params(self) -> list[click.Parameter]:
        """The options and arguments, in the order in which they are written of."""
        limits = prompts.limits() if self.roles else {}
        places = {
            "roles": ", ".join(f"{role} ({limits[role]:,})" for role in self.roles),
            "shown": ", ".join(self.shown),
            "efforts": ", ".join(EFFORTS),
        }
        made: dict[str, list[click.Parameter]] = {}
        for name, hint, default in _fields(self.kind):
            if hint is Allowance and self.roles:
                made |= {role: [option] for role, option in self._of_roles(places)}
            elif words := self.words.get(name):
                made[name] = [*_params(words, hint, self.usual.get(name, default), places)]
        return [param for name in self.words for param in made.get(name, ())]

    def _of_roles(self, places: Mapping[str, str]) -> Iterator[tuple[str, click.Option]]:
        effort = Known(EFFORTS)
        types = {"max_tokens": ByRole(self.roles, COUNT), "reasoning_effort": ByRole(self.roles, effort)}
        for name, type_ in ({**types, "examples": Shown(self.shown)} if self.shown else types).items():
            words = self.words[name]
            text = words.help.format_map(places)
            yield name, Option(words, help=text, type=type_, multiple=True, metavar=words.metavar)

    def fill(self, given: Mapping[str, Any]) -> Any:
        """The dataclass of what was given; all else is as its fields have it."""
        return _filled(self.kind, {**self.usual, **given}, "")


def copy_into(kind: type[T], options: Any, **more: Any) -> T:
    """A dataclass of what options of the same names hold, and of what else is given."""
    names = [slot.name for slot in fields(kind) if hasattr(options, slot.name)]  # type: ignore[arg-type]
    return kind(**{name: getattr(options, name) for name in names} | more)


def is_given(value: Any) -> bool:
    """Whether a value is one that was said: not None, False or empty; 0 is."""
    return value is not None and value is not False and value != ()


def check_one_of(options: Any, *names: str, needed: bool = False) -> None:
    """Raise ``UserError`` where several options are given of which one is enough, or the one needed is not."""
    spelled = {name: f"--{name.replace('_', '-')}" for name in names}
    given = [option for name, option in spelled.items() if is_given(getattr(options, name))]
    called = click.get_current_context(silent=True)
    more = f"see {called.command_path} --help" if called else "see --help"
    if len(given) > 1:
        raise UserError(f"argument {given[1]}: not allowed with argument {given[0]}; {more}")
    if needed and not given:
        raise UserError(f"one of the arguments {' '.join(spelled.values())} is required; {more}")


def _fields(kind: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Name, type and default of each field, and of those of a dataclass within."""
    hints = get_type_hints(kind, include_extras=True)
    for slot in fields(kind):
        name, hint = f"{prefix}{slot.name}", hints[slot.name]
        if is_dataclass(hint) and hint is not Allowance:
            yield from _fields(hint, f"{name}.")
        else:
            yield name, hint, slot.default if slot.default_factory is MISSING else ()


def _filled(kind: Any, given: Mapping[str, Any], prefix: str) -> Any:
    hints, values = get_type_hints(kind), dict[str, Any]()
    for slot in fields(kind):
        name, hint = f"{prefix}{slot.name}", hints[slot.name]
        if hint is Allowance:
            values[slot.name] = _allowance(given)
        elif name in given:
            values[slot.name] = _flat(given[name])
        elif is_dataclass(hint) and any(key.startswith(f"{name}__") for key in given):
            values[slot.name] = _filled(hint, given, f"{name}__")
    return kind(**values)


def _flat(value: Any) -> Any:
    """A value, or those of an option that takes several at once and may be repeated."""
    if isinstance(value, list):
        return tuple(value)
    is_nested = isinstance(value, tuple) and any(isinstance(part, list) for part in value)
    return tuple(chain.from_iterable(value)) if is_nested else value


def _allowance(given: Mapping[str, Any]) -> Allowance:
    """What was said of a role last counts."""
    tokens, efforts = (dict(_flat(given.get(name, ()))) for name in ("max_tokens", "reasoning_effort"))
    said = Allowance.by_role(tokens, efforts)
    return said.with_examples(prompts.examples(given["examples"][-1])) if "examples" in given else said


def _params(words: Words, hint: Any, default: Any, places: Mapping[str, str]) -> Iterator[click.Parameter]:
    kind, metadata = _plain(hint)
    is_list = get_origin(kind) in (tuple, Sequence, list)
    if is_list:
        kind, inner = _plain(get_args(kind)[0])
        metadata = (*metadata, *inner)
    type_ = _type(kind, metadata, words.values)
    needed = default is MISSING
    text = words.help.format_map({**places, "known": ", ".join(getattr(type_, "names", ()))})
    if "default" not in text and not needed and not isinstance(default, bool) and default not in (None, "", ()):
        text += f" (default {_shown(default)})"
    if not words.spelling.startswith("-"):
        many = -1 if is_list else 1
        place = (words.metavar or words.param.upper()) + ("..." if is_list else "")
        place = place if needed else f"[{place}]"
        yield click.Argument([words.param], type=type_, nargs=many, required=needed, metavar=place)
    elif type_ is bool:
        yield from _flags(words, is_list, text)
    else:
        metavar = words.metavar or (f"[{'|'.join(type_.choices)}]" if isinstance(type_, Choice) else None)
        yield Option(words, help=text, type=type_, multiple=is_list, required=needed, metavar=metavar)


def _shown(default: Any) -> str:
    if isinstance(default, float):
        return f"{default:g}"
    return f"{default:,}" if isinstance(default, int) and default >= 10_000 else str(default)


def _flags(words: Words, is_list: bool, text: str) -> Iterator[click.Option]:
    """An option without a value, perhaps with one that says no: spelled so, or hidden where both may be tried."""
    if is_list:
        flag = partial(Option, words, is_flag=True, callback=_added, expose_value=False)
        yield flag(decls=[words.spelling, f"{words.param}_yes"], help=text)
        yield flag(decls=[words.spelling.replace("--", "--no-", 1), f"{words.param}_no"], hidden=True)
    elif "/" in words.spelling:
        yield Option(words, help=text, default=None)
    else:
        yield Option(words, is_flag=True, flag_value=not words.is_negated, help=text)


def _added(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    name, _, said = str(param.name).rpartition("_")
    if value:
        ctx.params.setdefault(name, []).append(said == "yes")


class Option(click.Option):
    """An option with the group in which the help shows it."""

    def __init__(self, words: Words, decls: Sequence[str] = (), **more: Any) -> None:
        super().__init__(decls or [words.spelling, words.param], **more)
        self.group = words.group


def _plain(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type without None, and what its annotation says beside it."""
    if get_origin(hint) in (Union, UnionType):
        return _plain(next(part for part in get_args(hint) if part is not NoneType))
    if get_origin(hint) is Annotated:
        kind, inner = _plain(get_args(hint)[0])
        return kind, (*inner, *hint.__metadata__)
    return hint, ()


def _type(kind: Any, metadata: Sequence[Any], values: Mapping[str, Any] | None) -> Any:
    """What click converts a text by: what the annotation says, or the type itself."""
    if values is None and not metadata and get_origin(kind) is Literal:
        values = {value: value for value in get_args(kind)}
    if values is not None:
        return Choice(values)
    usual = {Path: Place(), int: WHOLE}.get(kind, kind)
    return metadata[0] if metadata else usual
