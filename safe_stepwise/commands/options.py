"""Makes the options of a command from the fields of the dataclass that it fills, and the dataclass from their values.

A field's *type* says which values are valid, and its default is the option's. The command's *help file* (YAML) has an
*entry* for each option, by *group*: ``--help`` shows the group ``everyday``, ``--help-all`` every group. A field
without an entry is no option. An entry ``--limit N: HELP`` fills the field ``limit``; ``--input SOURCE: {field:
sources, help: ...}`` fills a field of another name, ``field: loop.feedback`` one of a nested dataclass. Its ``values``
map the words that a user may write to values of the field. `ModelOptions` are those of every command that asks models.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import click

from safe_stepwise import prompts
from safe_stepwise.commands.values import COUNT, NATURAL, ByRole, Choice, Count, ExampleRoles, Name, Place, Seconds
from safe_stepwise.engines import client
from safe_stepwise.engines.base import AS_PROMPTED, EFFORTS, Allowance, Engine
from safe_stepwise.errors import UserError
from safe_stepwise.store.packaged import read_yaml

EVERYDAY, SHARED = "everyday", "shared"
T = TypeVar("T")


@dataclass(frozen=True)
class OptionSpec:
    """One entry of a help file: an option's spelling, metavar, help and group, and the field that it fills."""

    spelling: str
    metavar: str
    help: str
    group: str
    field: str
    values: Mapping[str, Any] | None = None

    @property
    def param(self) -> str:
        """The name of the value in click's context."""
        return self.field.replace(".", "__")


@cache
def read_option_specs(file: Path) -> Mapping[str, OptionSpec]:
    """Read the specs of a help file's options, by field, with the groups of ``shared.yaml`` that the file names."""
    groups = read_yaml(file)
    shared_groups = groups.pop(SHARED, ())
    specs = [_option_spec(group, key, entry) for group, options in groups.items() for key, entry in options.items()]
    by_field = {entry.field: entry for entry in specs}
    shared = read_option_specs(file.with_name(f"{SHARED}.yaml")) if shared_groups else {}
    used = {name: spec for name, spec in shared.items() if spec.group in shared_groups}
    return by_field | used | by_field  # the file's own entries come first, and win


def _option_spec(group: str, key: str, entry: Any) -> OptionSpec:
    spelling, _, metavar = key.partition(" ")
    name = spelling.partition("/")[0].lstrip("-").replace("-", "_")
    content = {"field": name, **(entry if isinstance(entry, Mapping) else {"help": entry})}
    return OptionSpec(**{"spelling": spelling, "metavar": metavar, "group": group, **content})


@dataclass(frozen=True)
class CommandLine:
    """A command's dataclass (``kind``), the specs of its options, and the roles that its options may name."""

    kind: type
    specs: Mapping[str, OptionSpec]
    roles: Sequence[str] = ()
    example_roles: Sequence[str] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Values that replace the fields' defaults."""

    def params(self) -> list[click.Parameter]:
        """Make click's options and arguments, in the order of the help file."""
        limits = prompts.limits() if self.roles else {}
        placeholders = {
            "roles": ", ".join(f"{role} ({limits[role]:,})" for role in self.roles),
            "shown": ", ".join(self.example_roles),
            "efforts": ", ".join(EFFORTS),
        }
        params: dict[str, list[click.Parameter]] = {}
        for name, hint, default in nested_fields(self.kind):
            if hint is Allowance and self.roles:
                params |= {role: [option] for role, option in self._role_options(placeholders)}
            elif spec := self.specs.get(name):
                params[name] = [*_params(spec, hint, self.defaults.get(name, default), placeholders)]
        return [param for name in self.specs for param in params.get(name, ())]

    def _role_options(self, placeholders: Mapping[str, str]) -> Iterator[tuple[str, click.Option]]:
        types: dict[str, click.ParamType[Any]] = {
            "max_tokens": ByRole(self.roles, COUNT),
            "reasoning_effort": ByRole(self.roles, Name(EFFORTS)),
        }
        types |= {"examples": ExampleRoles(self.example_roles)} if self.example_roles else {}
        for name, type_ in types.items():
            spec = self.specs[name]
            text = spec.help.format_map(placeholders)
            yield name, Option(spec, help=text, type=type_, multiple=True, metavar=spec.metavar)

    def fill(self, values: Mapping[str, Any]) -> Any:
        """Make the dataclass from the values of options, by click's names; other fields keep their defaults."""
        return _fill(self.kind, {**self.defaults, **values}, "")


def copy_into(kind: type[T], options: Any, **overrides: Any) -> T:
    """Make a dataclass from the attributes of ``options`` with the names of its fields, and from ``overrides``."""
    names = [slot.name for slot in fields(kind) if hasattr(options, slot.name)]  # type: ignore[arg-type]
    return kind(**{name: getattr(options, name) for name in names} | overrides)


def is_set(value: Any) -> bool:
    """Return whether an option has a value: not None, False or empty. 0 is a value."""
    return value is not None and value is not False and value != ()


def check_exclusive(options: Any, *names: str, required: bool = False) -> None:
    """Raise ``UserError`` if more than one of the named options is set, or none although one is ``required``."""
    spelled = {name: f"--{name.replace('_', '-')}" for name in names}
    chosen = [option for name, option in spelled.items() if is_set(getattr(options, name))]
    context = click.get_current_context(silent=True)
    hint = f"see {context.command_path} --help" if context else "see --help"
    if len(chosen) > 1:
        raise UserError(f"argument {chosen[1]}: not allowed with argument {chosen[0]}; {hint}")
    if required and not chosen:
        raise UserError(f"one of the arguments {' '.join(spelled.values())} is required; {hint}")


def nested_fields(kind: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the name, type and default of each field, those of nested dataclasses as ``outer.inner``."""
    hints = get_type_hints(kind, include_extras=True)
    for slot in fields(kind):
        name, hint = f"{prefix}{slot.name}", hints[slot.name]
        if is_dataclass(hint) and hint is not Allowance:
            yield from nested_fields(hint, f"{name}.")
        else:
            yield name, hint, slot.default if slot.default_factory is MISSING else ()


def _fill(kind: Any, values: Mapping[str, Any], prefix: str) -> Any:
    hints, arguments = get_type_hints(kind), dict[str, Any]()
    for slot in fields(kind):
        name, hint = f"{prefix}{slot.name}", hints[slot.name]
        if hint is Allowance:
            arguments[slot.name] = _allowance(values)
        elif name in values:
            arguments[slot.name] = _flatten(values[name])
        elif is_dataclass(hint) and any(key.startswith(f"{name}__") for key in values):
            arguments[slot.name] = _fill(hint, values, f"{name}__")
    return kind(**arguments)


def _flatten(value: Any) -> Any:
    """Return the values of a repeated option as one tuple (each use may give a list), any other value unchanged."""
    if isinstance(value, list):
        return tuple(value)
    is_nested = isinstance(value, tuple) and any(isinstance(item, list) for item in value)
    return tuple(chain.from_iterable(value)) if is_nested else value


def _allowance(values: Mapping[str, Any]) -> Allowance:
    tokens, efforts = (dict(_flatten(values.get(name, ()))) for name in ("max_tokens", "reasoning_effort"))
    allowance = Allowance.by_role(tokens, efforts)
    return allowance.with_examples(prompts.examples(values["examples"][-1])) if "examples" in values else allowance


def _params(spec: OptionSpec, hint: Any, default: Any, placeholders: Mapping[str, str]) -> Iterator[click.Parameter]:
    kind, metadata = _plain(hint)
    is_list = get_origin(kind) in (tuple, Sequence, list)
    if is_list:
        kind, inner = _plain(get_args(kind)[0])
        metadata = (*metadata, *inner)
    type_ = _type(kind, metadata, spec.values)
    required = default is MISSING
    text = spec.help.format_map({**placeholders, "known": ", ".join(getattr(type_, "names", ()))})
    if "default" not in text and not required and not isinstance(default, bool) and default not in (None, "", ()):
        text += f" (default {_format_default(default)})"
    if not spec.spelling.startswith("-"):
        nargs = -1 if is_list else 1
        text = (spec.metavar or spec.param.upper()) + ("..." if is_list else "")
        metavar = text if required else f"[{text}]"
        yield click.Argument([spec.param], type=type_, nargs=nargs, required=required, metavar=metavar)
    elif type_ is bool:
        yield from _flags(spec, is_list, text)
    else:
        choices = spec.metavar or (f"[{'|'.join(type_.choices)}]" if isinstance(type_, Choice) else None)
        yield Option(spec, help=text, type=type_, multiple=is_list, required=required, metavar=choices)


def _format_default(default: Any) -> str:
    if isinstance(default, float):
        return f"{default:g}"
    return f"{default:,}" if isinstance(default, int) and default >= 10_000 else str(default)


def _flags(spec: OptionSpec, is_list: bool, text: str) -> Iterator[click.Option]:
    """Make an option without a value; one for a list also has a hidden ``--no-`` form, as both may be compared."""
    if is_list:
        flag = partial(Option, spec, is_flag=True, callback=_append_flag, expose_value=False)
        yield flag(decls=[spec.spelling, f"{spec.param}_yes"], help=text)
        yield flag(decls=[spec.spelling.replace("--", "--no-", 1), f"{spec.param}_no"], hidden=True)
    elif "/" in spec.spelling:
        yield Option(spec, help=text, default=None)
    else:
        is_negated = spec.spelling.startswith("--no-") and not spec.field.startswith("no_")
        yield Option(spec, is_flag=True, flag_value=not is_negated, help=text)


def _append_flag(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    name, _, suffix = str(param.name).rpartition("_")
    if value:
        ctx.params.setdefault(name, []).append(suffix == "yes")


class Option(click.Option):
    """An option that knows the group in which the help shows it."""

    def __init__(self, spec: OptionSpec, decls: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(decls or [spec.spelling, spec.param], **settings)
        self.group = spec.group


def _plain(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    if get_origin(hint) in (Union, UnionType):
        return _plain(next(member for member in get_args(hint) if member is not NoneType))
    if get_origin(hint) is Annotated:
        kind, inner = _plain(get_args(hint)[0])
        return kind, (*inner, *hint.__metadata__)
    return hint, ()


def _type(kind: Any, metadata: Sequence[Any], values: Mapping[str, Any] | None) -> Any:
    """Return the type by which click converts a text: that of the annotation, or else the plain type."""
    if values is None and not metadata and get_origin(kind) is Literal:
        values = {value: value for value in get_args(kind)}
    if values is not None:
        return Choice(values)
    return metadata[0] if metadata else {Path: Place(), int: NATURAL}.get(kind, kind)


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The file of replies, the requests under way, the seconds of one call, and the allowance by role."""

    cache: Path | None = None
    in_flight: Count = client.IN_FLIGHT
    timeout: Seconds | None = None
    allowance: Allowance = AS_PROMPTED

    @property
    def cache_file(self) -> Path:
        """The file of the response cache: ``cache``, or the user's own."""
        return self.cache or client.default_cache()

    def replies(self) -> closing[client.ResponseCache]:
        """Open the response cache, and close it after the context; raises ``UserError`` if it can't be used."""
        return closing(client.ResponseCache(self.cache_file))

    def client(self, engine: Engine, replies: client.ResponseCache) -> client.Client:
        """Make a client of an engine, with the response cache ``replies`` and the limits of these options."""
        return client.Client(engine, replies, self.in_flight, client.TRIES, self.allowance)
