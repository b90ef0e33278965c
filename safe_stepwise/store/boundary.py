"""The one boundary: what comes from disk, YAML, HTTP or the Hub is read into the dataclasses that stand for it.

A dataclass says what may be there: nothing is converted but lists to tuples (or sets), objects to
dataclasses and texts to paths; numbers are finite and below `LARGEST`. Whatever is wrong is told at once, in one line.
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
from safe_stepwise.store.opening import open_file
from safe_stepwise.store.terminal import printable

DEEPEST = 100
"""Objects and lists within each other; nothing that is written here goes half as deep."""
MOST_JSON = 1 << 26
"""Bytes of a file."""


def parse_json(content: str | bytes) -> Any:
    """The value of a JSON document (UTF-8 if bytes, a byte order mark before it or not).

    Raises ``ValueError``, and nothing else, for what is no JSON, and for what it may say but no
    reader here can use: a number beyond what a float holds, nesting beyond `DEEPEST`.

    >>> parse_json('{"a": [1, 2]}')
    {'a': [1, 2]}
    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
    ValueError: nested more than 100 deep
    """
    text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise _too_deep() from None
    if text.count("[") + text.count("{") > DEEPEST:
        _check_depth(value)
    return value


def read_json(file: Path) -> Any:
    """The value of a JSON file; raises OSError, and ``ValueError`` as `parse_json`.

    So it does for a file of more than `MOST_JSON` bytes, which it does not read to its end.
    """
    return parse_json(read_bounded(file, MOST_JSON))


def read_bounded(file: Path, most: int) -> bytes:
    """A file's bytes; raises OSError, and ``ValueError`` if it has more than ``most``."""
    with open_file(file) as opened:
        content = opened.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it has more than {most:,} bytes")
    return content


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST):
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [two for one in inner for two in one if isinstance(two, dict | list)]
        if not level:
            return
    raise _too_deep()


def _too_deep() -> ValueError:
    return ValueError(f"nested more than {DEEPEST} deep")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        _refuse(digits if len(digits) <= 20 else f"{digits[:20]}…")
    return number


def _refuse(constant: str) -> NoReturn:
    is_named = constant.strip("-").isalpha()
    raise ValueError(f"{constant} is {'no JSON' if is_named else 'too large a number'}")


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


if TYPE_CHECKING:
    from pydantic_core import ErrorDetails, SchemaValidator

T = TypeVar("T")
LARGEST = 2**63
"""Beyond all counts and scores, and what a column holds."""
_MOST_FAULTS = 20
_BOUNDS = {"gt": -LARGEST, "lt": LARGEST, "strict": True}
_WHOLE = {"type": "int", **_BOUNDS}
_FLOAT = {"type": "float", "allow_inf_nan": False, **_BOUNDS}
_SCALARS: Mapping[str, tuple[Mapping[str, Any], str]] = {
    # No "str", which would refuse the half of a character that a model may say.
    "str": ({"type": "is-instance", "cls": str}, "a text"),
    "int": (_WHOLE, "a whole number"),
    # A whole number stays one, so that what is read is written again as it was.
    "float": ({"type": "union", "choices": [_WHOLE, _FLOAT], "mode": "left_to_right"}, "a number"),
    "bool": ({"type": "bool", "strict": True}, "true or false"),
    "none": ({"type": "none"}, "null"),
}
_EXPECTED: Mapping[str, str] = {
    "missing": "there",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "is_instance_of": "a list",
    "sequence_str": "a list",
    "dict_type": "an object",
    "mapping_type": "an object",
    "dataclass_type": "an object",
}


@overload
def read(kind: type[T], value: Any, what: str = "it", *, exact: bool = False) -> T: ...
@overload
def read(kind: Any, value: Any, what: str = "it", *, exact: bool = False) -> Any: ...
def read(kind: Any, value: Any, what: str = "it", *, exact: bool = False) -> Any:
    """A value of JSON or YAML as an instance of ``kind``: a dataclass, or what one may have as a field.

    An instance is checked as an object is. Fields with a default may be lacking. Keys that are no field are left out,
    and faults if ``exact``. Raises ``ValueError`` with the place of each fault, ``what`` in front of it.

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
        return _validator(kind, exact).validate_python(value)
    except ValidationError as error:
        faults = error.errors(include_url=False)
    lines = list(dict.fromkeys(_fault_lines(faults, kind, what)))
    more = [f"and {len(lines) - _MOST_FAULTS} more"] if len(lines) > _MOST_FAULTS else []
    raise ValueError("; ".join([*lines[:_MOST_FAULTS], *more]))


@overload
def read_file(kind: type[T], path: Path, what: str = "it", mend: str = "", *, exact: bool = False) -> T: ...
@overload
def read_file(kind: Any, path: Path, what: str = "it", mend: str = "", *, exact: bool = False) -> Any: ...
def read_file(kind: Any, path: Path, what: str = "it", mend: str = "", *, exact: bool = False) -> Any:
    """The instance of ``kind`` that a file holds: YAML if it is called so, else JSON.

    Raises ``UserError`` that names the file, and ``mend`` as what to do if there is something to do.
    """
    try:
        content = read_yaml(path) if path.suffix in (".yaml", ".yml") else read_json(path)
        json.dumps(content, ensure_ascii=False, default=str).encode()  # no half of a character, as escapes may say
        return read(kind, content, what, exact=exact)
    except OSError as error:
        reason = error.strerror
    except ValueError as error:
        reason = str(error)
    raise UserError(f"{path}: cannot be read ({reason}); {mend}" if mend else f"{path}: {reason}")


def plain(value: Any) -> Any:
    """A value as JSON has it: dataclasses as objects, tuples and sets as lists, paths as texts.

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
def _validator(kind: Any, exact: bool) -> "SchemaValidator":
    from pydantic import TypeAdapter
    from pydantic_core import SchemaValidator

    schema: Any = _strict(TypeAdapter(kind).core_schema, exact)
    return SchemaValidator(schema)


def _strict(schema: Any, exact: bool) -> Any:
    """Pydantic's schema of a type with this module's rules, each fault in this module's words."""
    if isinstance(schema, list):
        return [_strict(inner, exact) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    kind: str = schema.get("type", "")
    if kind in _SCALARS:
        return _worded(*_SCALARS[kind])
    if kind == "literal":
        return _worded(schema, f"one of {', '.join(map(str, schema['expected']))}")
    if kind == "lax-or-strict":  # a path
        return _worded(schema, "a path")
    schema = {
        key: inner if key in ("serialization", "metadata") else _strict(inner, exact) for key, inner in schema.items()
    }
    if kind == "union":
        return _worded(schema, " or ".join(dict.fromkeys(map(_words, schema["choices"]))))
    if kind == "dataclass":
        return {**schema, "revalidate_instances": "always"}
    return {**schema, "extra_behavior": "forbid" if exact else "ignore"} if kind == "dataclass-args" else schema


def _worded(schema: Mapping[str, Any], words: str) -> dict[str, Any]:
    return {"type": "custom-error", "schema": schema, "custom_error_type": "words", "custom_error_message": words}


def _words(choice: Any) -> str:
    kind = choice["type"]
    if kind == "custom-error":
        return str(choice["custom_error_message"])
    return "an object" if kind in ("dict", "dataclass") else "a list"


def _fault_lines(faults: "Sequence[ErrorDetails]", kind: Any, what: str) -> Iterator[str]:
    lengths = {fault["loc"][:-1]: fault["loc"][-1] for fault in faults if _is_short_list(fault)}
    for fault in faults:
        loc, type_ = fault["loc"], fault["type"]
        if _is_short_list(fault):
            yield f"{_place(loc[:-1], what)} is not a list of {int(lengths[loc[:-1]]) + 1}"
        elif type_ == "too_long":
            yield f"{_place(loc, what)} is not a list of {fault['ctx']['max_length']}"
        elif type_ in ("unexpected_keyword_argument", "invalid_key"):
            key = str(loc[-1])
            yield f"{_place((*loc[:-1], key), what)}: no such key; {key_hint(key, _names(kind, loc[:-1]))}"
        elif type_ in ("value_error", "assertion_error"):
            yield f"{_place(loc, what)}: {fault['ctx']['error']}"
        else:
            yield f"{_place(loc, what)} is not {_EXPECTED.get(type_, fault['msg'])}"


def _is_short_list(fault: "ErrorDetails") -> bool:
    return fault["type"] == "missing" and isinstance(fault["loc"][-1], int)


def _place(loc: Sequence[str | int], what: str) -> str:
    if loc and loc[-1] == "[key]":
        return f"a key of {_place(loc[:-2], what)}"
    place = what + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return place if what else place.removeprefix(".") or "it"


def key_hint(key: str, names: Sequence[str]) -> str:
    """What to say of a key that is none of some names."""
    near = difflib.get_close_matches(key, names, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"keys: {', '.join(names)}"


def _names(kind: Any, loc: Sequence[str | int]) -> list[str]:
    """The fields of the dataclass at a place within a type."""
    kinds = [kind]
    for part in (*loc, None):
        kinds = [inner for outer in kinds for inner in _without_none(outer)]
        if part is not None:
            kinds = [inner for outer in kinds for inner in _within(outer, part)]
    return [field.name for inner in kinds if dataclasses.is_dataclass(inner) for field in dataclasses.fields(inner)]


def _without_none(kind: Any) -> tuple[Any, ...]:
    is_union = NoneType in get_args(kind)
    return tuple(inner for inner in get_args(kind) if inner is not NoneType) if is_union else (kind,)


def _within(kind: Any, part: str | int) -> tuple[Any, ...]:
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return (get_type_hints(kind)[str(part)],)
    inner = [each for each in get_args(kind) if each is not Ellipsis]
    if get_origin(kind) is tuple and Ellipsis not in get_args(kind):
        return (inner[int(part)],)
    return tuple(inner[-1:])


MOST_YAML = 1 << 20
"""Bytes of a file."""
MOST_VALUES = 100_000
"""Values of a YAML document, those counted again that an alias stands for."""


def content_of(file: Path, most: int = MOST_YAML) -> bytes:
    """A file's bytes; raises ``UserError`` if it can't be read or has more than ``most``."""
    try:
        return read_bounded(file, most)
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror})") from None
    except ValueError:
        raise UserError(f"{file}: has more than {most:,} bytes, so it is no such file") from None


def parse_yaml(content: bytes) -> Any:
    """The value of a YAML document in UTF-8.

    Raises ``ValueError``, one line with that of the document, for what is none, says a key twice,
    or is nested beyond `DEEPEST`, by aliases too.

    >>> parse_yaml(b"a: [1, 2]")
    {'a': [1, 2]}
    >>> parse_yaml(b"a: 1\\nb: 2\\na: 3")
    Traceback (most recent call last):
    ValueError: line 3: the key a is there twice
    """
    try:
        text = content.decode("utf-8")
        _check_nesting(text)
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _measure(node, {})
        return loader.construct_document(node)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line}: not UTF-8 text") from None
    except _Refused as error:
        raise ValueError(str(error)) from None
    except Exception as error:  # of a value its tag does not fit PyYAML raises what comes up
        said = printable(str(error).replace(' in "<unicode string>",', " at"))
        raise ValueError(f"not YAML ({said or type(error).__name__})") from None


def read_yaml(file: Path) -> Any:
    """The value of a YAML file; raises ``UserError`` that names it, as `parse_yaml` does."""
    content = content_of(file)
    with at_place(f"{file}", ValueError):
        return parse_yaml(content)


def read_object(file: Path) -> dict[str, Any]:
    """The object of a JSON file; raises ``UserError`` for what is none, or says a key twice."""
    content = content_of(file, MOST_JSON)
    try:
        value = parse_json(content)
        json.loads(content, object_pairs_hook=_once)
    except _Refused as refused:
        reason: ValueError = refused
        try:
            parse_yaml(content)  # as which it has lines
        except ValueError as error:
            reason = error
        raise UserError(f"{file}: {reason}") from None
    except ValueError as error:
        raise UserError(f"{file}: not JSON ({printable(str(error))})") from None
    if not isinstance(value, dict):
        raise UserError(f"{file}: holds no object of JSON")
    return value


class _Refused(ValueError):
    """What a document may not hold, though it is YAML or JSON."""


def _once(pairs: list[tuple[str, Any]]) -> None:
    seen = set()
    for key, _ in pairs:
        if key in seen:
            raise _Refused(f"the key {printable(str(key))} is there twice")
        seen.add(key)


def _check_nesting(text: str) -> None:
    """Beforehand, as what YAML takes to read a list grows with the lists around it."""
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise _Refused(f"line {line}: nested more than {DEEPEST} deep")


def _measure(node: Any, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Values and depth of a node, itself and each alias included; raises ``ValueError``."""
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = (1, DEEPEST)  # until it is measured, for a node within itself
    inner = node.value if isinstance(node, yaml.CollectionNode) else []
    if isinstance(node, yaml.MappingNode):
        _check_keys(node)
        inner = [part for pair in inner for part in pair]
    parts = [_measure(part, known) for part in inner]
    size = 1 + sum(part for part, _ in parts)
    depth = 1 + max((part for _, part in parts), default=0)
    line = node.start_mark.line + 1
    if depth > DEEPEST:
        raise _Refused(f"line {line}: nested more than {DEEPEST} deep")
    if size > MOST_VALUES:
        raise _Refused(f"line {line}: more than {MOST_VALUES:,} values, counting aliases")
    known[id(node)] = size, depth
    return size, depth


def _check_keys(node: yaml.MappingNode) -> None:
    seen = set()
    for key, _ in node.value:
        named = key.tag, str(key.value)
        if named in seen:
            line = key.start_mark.line + 1
            raise _Refused(f"line {line}: the key {printable(str(key.value))} is there twice")
        seen.add(named)
