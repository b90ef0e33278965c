"""Reads values from outside (files, HTTP, the Hub) into dataclasses: the one boundary of all our packages.

The *type* to read, a dataclass or the type of its field, decides what is valid; other modules check no field again.
A *value* is what a JSON or YAML parser returns. Only lists are converted to tuples or sets, objects to dataclasses,
and texts to paths: "3" is never read as 3. A *fault* is one place in the value that does not fit, named like
``counts.a[1]``; one error lists all of them on one line. Files are bounded in bytes, nesting and number of values.
"""

import dataclasses
import difflib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, get_args, get_origin, get_type_hints, overload

import yaml

from safe_stepwise.errors import UserError, at_place
from safe_stepwise.store import opening, terminal

MAX_DEPTH = 100
"""Maximum levels of objects and lists within each other; our own files have less than half as many."""
MAX_JSON_BYTES = 1 << 26
"""Maximum size of a JSON file: 64 MiB."""


def parse_json(content: str | bytes, *, unique: bool = False) -> Any:
    """Parse a JSON document (bytes are UTF-8, with or without a byte order mark).

    Raises only ``ValueError``: for invalid JSON, a number that no float can hold or that has thousands of digits,
    nesting beyond `MAX_DEPTH` and, if ``unique``, a key that occurs twice in an object.
    """
    text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
    try:
        value = (_UNIQUE_DECODER if unique else _DECODER).decode(text)
        if text.count("[") + text.count("{") > MAX_DEPTH:
            _check_depth(value)
    except RecursionError:
        raise ValueError(f"nested more than {MAX_DEPTH} deep") from None
    except ValueError as error:
        if "int_max_str_digits" in str(error):  # its advice is for programmers
            raise ValueError("a whole number has too many digits") from None
        raise
    return value


def read_json(file: Path) -> Any:
    """Read a JSON file; raises OSError, and ``ValueError`` as `parse_json` does or above `MAX_JSON_BYTES`."""
    return parse_json(read_bounded(file, MAX_JSON_BYTES))


def read_bounded(file: Path, limit: int) -> bytes:
    """Read a file's bytes; raises OSError, and ``ValueError`` if the file has more than ``limit`` bytes."""
    with opening.open_file(file) as opened:
        content = opened.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"it has more than {limit:,} bytes")
    return content


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        children = (node.values() if isinstance(node, dict) else node for node in level)
        level = [child for siblings in children for child in siblings if isinstance(child, dict | list)]
        if not level:
            return
    raise RecursionError


def _parse_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        _reject_number(digits if len(digits) <= 20 else f"{digits[:20]}…")
    return number


def _reject_number(constant: str) -> NoReturn:
    is_named = constant.strip("-").isalpha()
    raise ValueError(f"{constant} is {'no JSON' if is_named else 'too large a number'}")


def _make_unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for key, value in pairs:
        if key in content:
            raise ValueError(f"the key {terminal.printable(key)!r} stands twice in one object; remove one")
        content[key] = value
    return content


_DECODER = json.JSONDecoder(parse_constant=_reject_number, parse_float=_parse_float)
_UNIQUE_DECODER = json.JSONDecoder(
    parse_constant=_reject_number, parse_float=_parse_float, object_pairs_hook=_make_unique_object
)


if TYPE_CHECKING:
    from pydantic_core import ErrorDetails, SchemaValidator

T = TypeVar("T")
MAX_NUMBER = 2**63
"""The bound of all numbers' absolute values: no count or score is as large, and no column could hold it."""
_MAX_FAULTS = 20
_NUMBER_BOUNDS = {"gt": -MAX_NUMBER, "lt": MAX_NUMBER, "strict": True}
_WHOLE_SCHEMA = {"type": "int", **_NUMBER_BOUNDS}
_FLOAT_SCHEMA = {"type": "float", "allow_inf_nan": False, **_NUMBER_BOUNDS}
_SCALARS: Mapping[str, tuple[Mapping[str, Any], str]] = {
    # Not "str", which would refuse half of a surrogate pair; models write them.
    "str": ({"type": "is-instance", "cls": str}, "a text"),
    "int": (_WHOLE_SCHEMA, "a whole number"),
    # A whole number stays an integer, so that writing it again gives the same text.
    "float": ({"type": "union", "choices": [_WHOLE_SCHEMA, _FLOAT_SCHEMA], "mode": "left_to_right"}, "a number"),
    "bool": ({"type": "bool", "strict": True}, "true or false"),
    "none": ({"type": "none"}, "null"),
}
_EXPECTED: Mapping[str, str] = {
    "missing": "there",
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type", "is_instance_of"), "a list"),
    "sequence_str": "a list",
    **dict.fromkeys(("dict_type", "mapping_type", "dataclass_type"), "an object"),
}


@overload
def read(kind: type[T], value: Any, name: str = "it", *, exact: bool = False) -> T: ...
@overload
def read(kind: Any, value: Any, name: str = "it", *, exact: bool = False) -> Any: ...
def read(kind: Any, value: Any, name: str = "it", *, exact: bool = False) -> Any:
    """Read a value of JSON or YAML as an instance of ``kind``: a dataclass, or the type of a dataclass's field.

    A value that already is an instance is also checked. Fields with a default may be missing. Keys without a field are
    ignored, or are faults if ``exact``. Raises ``ValueError`` with all faults; ``name`` is the value's name in it.

    >>> from safe_stepwise.records import Triple
    >>> read(Triple, {"head": "Oru", "relation": "river", "tail": "Vel"}).tail
    'Vel'
    >>> read(Mapping[str, tuple[int, ...]], {"a": [1, None], "b": 2}, "counts")
    Traceback (most recent call last):
    ValueError: counts.a[1] is not a whole number; counts.b is not a list
    >>> read(Triple, {"head": "Oru", "relation": "river", "tial": "Vel"}, "evidence", exact=True)
    Traceback (most recent call last):
    ValueError: evidence.tail is not there; evidence.tial: no such key; did you mean tail?
    """
    from pydantic_core import ValidationError

    try:
        return _make_validator(kind, exact).validate_python(value)
    except ValidationError as error:
        faults = error.errors(include_url=False)
    lines = list(dict.fromkeys(_word_faults(faults, kind, name)))
    if len(lines) > _MAX_FAULTS:
        lines[_MAX_FAULTS:] = [f"and {len(lines) - _MAX_FAULTS} more"]
    raise ValueError("; ".join(lines))


@overload
def read_file(kind: type[T], path: Path, name: str = "it", mend: str = "") -> T: ...
@overload
def read_file(kind: Any, path: Path, name: str = "it", mend: str = "") -> Any: ...
def read_file(kind: Any, path: Path, name: str = "it", mend: str = "") -> Any:
    """Read an instance of ``kind`` from a file: YAML if its suffix is ``.yaml`` or ``.yml``, else JSON.

    ``name`` is that of `read`. Raises ``UserError`` with the file's path; its message ends with
    ``mend``, which says what the user can do.
    """
    try:
        content = read_yaml(path) if path.suffix in (".yaml", ".yml") else read_json(path)
        json.dumps(content, ensure_ascii=False, default=str).encode()  # refuses half of a surrogate pair
        return read(kind, content, name)
    except OSError as error:
        reason = error.strerror
    except ValueError as error:
        reason = str(error)
    raise UserError(f"{path}: cannot be read ({reason}); {mend}" if mend else f"{path}: {reason}")


def plain(value: Any) -> Any:
    """Convert a value to JSON's types: dataclasses to objects, tuples and sets to lists, paths to texts.

    >>> from safe_stepwise.records import Candidate
    >>> plain({"best": Candidate("Oru", ("river", "~mouth")), "file": Path("a/b")})
    {'best': {'topic': 'Oru', 'path': ['river', '~mouth']}, 'file': 'a/b'}
    """
    if isinstance(value, str | int | float | NoneType):
        return value
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(plain(inner) for inner in value)
    if isinstance(value, Sequence):
        return [plain(inner) for inner in value]
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return str(value) if isinstance(value, Path) else value


@cache
def _make_validator(kind: Any, exact: bool) -> "SchemaValidator":
    from pydantic import TypeAdapter
    from pydantic_core import SchemaValidator

    schema: Any = _make_strict(TypeAdapter(kind).core_schema, exact)
    return SchemaValidator(schema)


def _make_strict(schema: Any, exact: bool) -> Any:
    """Change Pydantic's schema of a type so that it follows this module's rules and reports faults in its words."""
    if isinstance(schema, list):
        return [_make_strict(inner, exact) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    kind: str = schema.get("type", "")
    if kind in _SCALARS:
        return _with_message(*_SCALARS[kind])
    if kind == "literal":
        return _with_message(schema, f"one of {', '.join(map(str, schema['expected']))}")
    if kind == "lax-or-strict":  # a path
        return _with_message(schema, "a path")
    schema = {
        key: inner if key in ("serialization", "metadata") else _make_strict(inner, exact)
        for key, inner in schema.items()
    }
    if kind == "union":
        return _with_message(schema, " or ".join(dict.fromkeys(map(_find_message, schema["choices"]))))
    if kind == "dataclass":
        return {**schema, "revalidate_instances": "always"}
    return {**schema, "extra_behavior": "forbid" if exact else "ignore"} if kind == "dataclass-args" else schema


def _with_message(schema: Mapping[str, Any], words: str) -> dict[str, Any]:
    return {"type": "custom-error", "schema": schema, "custom_error_type": "words", "custom_error_message": words}


def _find_message(choice: Any) -> str:
    kind = choice["type"]
    if kind == "custom-error":
        return str(choice["custom_error_message"])
    return "an object" if kind in ("dict", "dataclass") else "a list"


def _word_faults(faults: "Sequence[ErrorDetails]", kind: Any, name: str) -> Iterator[str]:
    lengths = {fault["loc"][:-1]: fault["loc"][-1] for fault in faults if _is_short_list(fault)}
    for fault in faults:
        loc, type_ = fault["loc"], fault["type"]
        if _is_short_list(fault):
            yield f"{_name_place(loc[:-1], name)} is not a list of {int(lengths[loc[:-1]]) + 1}"
        elif type_ == "too_long":
            yield f"{_name_place(loc, name)} is not a list of {fault['ctx']['max_length']}"
        elif type_ in ("unexpected_keyword_argument", "invalid_key"):
            key = str(loc[-1])
            yield f"{_name_place((*loc[:-1], key), name)}: no such key; {key_hint(key, _field_names(kind, loc[:-1]))}"
        elif type_ in ("value_error", "assertion_error"):
            yield f"{_name_place(loc, name)}: {fault['ctx']['error']}"
        else:
            yield f"{_name_place(loc, name)} is not {_EXPECTED.get(type_, fault['msg'])}"


def _is_short_list(fault: "ErrorDetails") -> bool:
    return fault["type"] == "missing" and isinstance(fault["loc"][-1], int)


def _name_place(loc: Sequence[str | int], name: str) -> str:
    if loc and loc[-1] == "[key]":
        return f"a key of {_name_place(loc[:-2], name)}"
    place = name + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in loc)
    return place if name else place.removeprefix(".") or "it"


def key_hint(key: str, names: Sequence[str]) -> str:
    """Return a hint for an unknown key: the most similar of ``names``, or all of them."""
    matches = difflib.get_close_matches(key, names, n=1, cutoff=0.5)
    return f"did you mean {matches[0]}?" if matches else f"keys: {', '.join(names)}"


def _field_names(kind: Any, loc: Sequence[str | int]) -> list[str]:
    kinds = _without_none(kind)
    for key in loc:
        kinds = [inner for outer in kinds for inner in _without_none(_type_at(outer, key))]
    return [field.name for inner in kinds if dataclasses.is_dataclass(inner) for field in dataclasses.fields(inner)]


def _without_none(kind: Any) -> list[Any]:
    choices = get_args(kind)
    return [choice for choice in choices if choice is not NoneType] if NoneType in choices else [kind]


def _type_at(kind: Any, key: str | int) -> Any:
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return get_type_hints(kind)[str(key)]
    arguments = get_args(kind) or (None,)
    is_row = get_origin(kind) is tuple and Ellipsis not in arguments
    return arguments[int(key)] if is_row else [inner for inner in arguments if inner is not Ellipsis][-1]


MAX_YAML_BYTES = 1 << 20
"""Maximum size of a YAML file: 1 MiB."""
MAX_YAML_VALUES = 100_000
"""Maximum number of values in a YAML document; an alias counts as all the values that it repeats."""


def read_content(file: Path, limit: int = MAX_YAML_BYTES) -> bytes:
    """Read a file's bytes; raises ``UserError`` if it can't be read or has more than ``limit`` bytes."""
    try:
        return read_bounded(file, limit)
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror})") from None
    except ValueError:
        raise UserError(f"{file}: has more than {limit:,} bytes, so it is no such file") from None


def parse_yaml(content: bytes) -> Any:
    """Parse a YAML document in UTF-8.

    Raises ``ValueError``, whose one line has the line's number, for invalid YAML, a repeated key, nesting beyond
    `MAX_DEPTH` and more than `MAX_YAML_VALUES` values; both count what aliases repeat.

    >>> parse_yaml(b"a: 1\\nb: 2\\na: 3")
    Traceback (most recent call last):
    ValueError: line 3: the key a is there twice
    """
    try:
        text = content.decode("utf-8")
        _check_nesting(text)
        loader = yaml.SafeLoader(text)
        if (node := loader.get_single_node()) is None:
            return None
        _measure_node(node, {})
        return loader.construct_document(node)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line}: not UTF-8 text") from None
    except _Refused as error:
        raise ValueError(str(error)) from None
    except Exception as error:  # PyYAML raises any error for a value that does not fit its tag
        reason = terminal.printable(str(error).replace(' in "<unicode string>",', " at"))
        raise ValueError(f"not YAML ({reason or type(error).__name__})") from None


def read_yaml(file: Path) -> Any:
    """Read a YAML file; raises ``UserError`` with its path if it can't be read, or as `parse_yaml` does."""
    content = read_content(file)
    with at_place(f"{file}", ValueError):
        return parse_yaml(content)


def read_object(file: Path) -> dict[str, Any]:
    """Read a JSON file that holds an object; raises ``UserError`` for any other file and for a repeated key."""
    content = read_content(file, MAX_JSON_BYTES)
    try:
        value = parse_json(content, unique=True)
    except ValueError as error:
        raise UserError(f"{file}: not JSON ({terminal.printable(str(error))})") from None
    if not isinstance(value, dict):
        raise UserError(f"{file}: does not hold a JSON object")
    return value


class _Refused(ValueError):
    """A valid YAML document that breaks our own rules: a repeated key, or too many levels or values."""


def _check_nesting(text: str) -> None:
    """Raise `_Refused` for a document that is nested too deeply, before it is built, which takes time."""
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise _Refused(f"line {line}: nested more than {MAX_DEPTH} deep")


def _measure_node(node: Any, measured: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Return the number of values in a node and its depth, which count itself and aliases; raises `_Refused`."""
    if id(node) in measured:
        return measured[id(node)]
    measured[id(node)] = (1, MAX_DEPTH)  # too deep for a node within itself, until it is measured
    children = node.value if isinstance(node, yaml.CollectionNode) else []
    if isinstance(node, yaml.MappingNode):
        _check_repeated_keys(node)
        children = [child for pair in children for child in pair]
    sizes = [_measure_node(child, measured) for child in children]
    size = 1 + sum(values for values, _ in sizes)
    depth = 1 + max((levels for _, levels in sizes), default=0)
    line = node.start_mark.line + 1
    if depth > MAX_DEPTH:
        raise _Refused(f"line {line}: nested more than {MAX_DEPTH} deep")
    if size > MAX_YAML_VALUES:
        raise _Refused(f"line {line}: more than {MAX_YAML_VALUES:,} values, counting aliases")
    measured[id(node)] = size, depth
    return size, depth


def _check_repeated_keys(node: yaml.MappingNode) -> None:
    keys = set()
    for key, _ in node.value:
        identity = key.tag, str(key.value)
        if identity in keys:
            line = key.start_mark.line + 1
            raise _Refused(f"line {line}: the key {terminal.printable(str(key.value))} is there twice")
        keys.add(identity)
