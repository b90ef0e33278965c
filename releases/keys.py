"""A manifest's mappings, read strictly into the dataclasses that they fill."""

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from safe_stepwise.errors import UserError, one_of
from safe_stepwise.store.boundary import content_of, parse_yaml

_IN_YAML: Mapping[Any, type] = {Path: str, Mapping: dict, tuple: list}
_Entry = TypeVar("_Entry")


@dataclass(frozen=True, slots=True)
class Known:
    """What a manifest may name, what it need not say, and who reads its specs."""

    benchmarks: Collection[str]
    recipes: Path
    """A folder of ``NAME.yaml``."""
    evaluation_size: int
    max_length: int
    check_teacher: Callable[[str, str, Path | None], object]
    """Raises ``UserError`` for a spec of no teacher, beginning with the second argument. Lists that
    it names are in the folder; it may name none where that is None."""
    check_source: Callable[[str, str], object]
    """Raises ``UserError`` for a benchmark's input that is no file here, and says so itself."""
    check_engine: Callable[[str], object]
    """Raises ``UserError`` for a spec of no engine."""
    check_composition: Callable[..., object]
    """Raises ``UserError`` for rows, questions, ideal, refined and the like at odds."""
    check_recipe: Callable[[Path, Mapping[str, Any]], object]
    """Raises ``UserError`` for a recipe that can't be read, or changes of it that are none."""
    check_generator: Callable[[Path, Mapping[str, Any]], object]
    """The same of one that trains a generator."""


def manifest_values(path: Path) -> tuple[Any, str]:
    """What a manifest's YAML says, and the file's SHA-256; ``UserError`` if it can't be read."""
    content = content_of(path)
    try:
        return parse_yaml(content), hashlib.sha256(content).hexdigest()
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None


def read_entry(cls: type[_Entry], values: Any, where: str, **unsaid: Any) -> _Entry:
    """A part of the manifest by the fields of its class; ``unsaid`` are values it need not say."""
    values = {**unsaid, **values} if isinstance(values, dict) else values
    hints = check_keys(cls, values, where)
    return cls(
        **{
            key: hints[key](value) if hints[key] in (Path, tuple) and value is not None else value
            for key, value in values.items()
        }
    )


def check_keys(cls: type, values: Any, where: str, given: Collection[str] = ()) -> Mapping[str, Any]:
    """The types of a class's fields; raises ``UserError`` for keys or values that are no such."""
    if not isinstance(values, dict):
        raise UserError(f"{where.rstrip('.') or 'the whole'}: has to be a mapping of keys")
    hints = {name: _bare(hint) for name, hint in get_type_hints(cls).items() if name not in given}
    for key, value in values.items():
        one_of(str(key), hints, f"key {where}{key}:")
        wanted = dict if is_dataclass(hints[key]) else _IN_YAML.get(hints[key], hints[key])
        fits = isinstance(value, int | float if wanted is float else wanted)
        if not fits or (isinstance(value, bool) and wanted is not bool):
            raise UserError(f"{where}{key}: has to be of type {wanted.__name__}")
    for field in fields(cls):
        needed = field.default is MISSING and field.default_factory is MISSING
        if needed and field.name not in (*values, *given):
            raise UserError(f"{where}{field.name}: is missing")
    return hints


def _bare(hint: Any) -> Any:
    """A field's type without its None and its items: ``Path`` of ``Path | None``."""
    said = [one for one in get_args(hint) if one is not NoneType]
    one = said[0] if NoneType in get_args(hint) else hint
    return get_origin(one) or one
