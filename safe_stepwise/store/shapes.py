"""Whether a value that was read back has the form in which it was written."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")
_KINDS: Mapping[Any, tuple[type | tuple[type, ...], str]] = {
    str: (str, "a text"),
    bool: (bool, "true or false"),
    int: (int, "a whole number"),
    float: ((int, float), "a number"),
    NoneType: (NoneType, "null"),
    tuple: ((tuple, list), "a list"),
    list: ((tuple, list), "a list"),
    Sequence: ((tuple, list), "a list"),
    dict: (Mapping, "an object"),
    Mapping: (Mapping, "an object"),
}
_LARGEST = 2**63
"""Beyond all counts and scores, and what a column holds."""


def shaped(value: T, kind: Any, what: str = "it") -> T:
    """The value, if it is of a type all the way down; an object of JSON may stand for a dataclass.

    ``kind`` is a dataclass, or what one may have as a field; fields with a default may be lacking.
    Numbers have to be finite. Raises ``ValueError`` with the place of what is not.

    >>> shaped({"a": [1, 2]}, Mapping[str, Sequence[int]])
    {'a': [1, 2]}
    >>> shaped({"a": [1, None]}, Mapping[str, Sequence[int]], "counts")
    Traceback (most recent call last):
    ValueError: counts.a[1] is not a whole number
    """
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin is Literal:
        _need(value in inner, what, f"one of {', '.join(map(str, inner))}")
    elif is_dataclass(origin):
        _shaped_fields(value, origin, what)
    elif origin in _KINDS:
        _shaped_plain(value, origin, inner, what)
    elif NoneType in inner and value is not None:
        for one in inner:
            if one is not NoneType:
                shaped(value, one, what)
    return value


def _shaped_fields(value: Any, kind: Any, what: str) -> None:
    is_object = isinstance(value, Mapping)
    _need(is_object or isinstance(value, kind), what, "an object")
    for name, type_, needed in _fields(kind):
        if is_object and name not in value:
            _need(not needed, f"{what}.{name}", "there")
        else:
            shaped(value[name] if is_object else getattr(value, name), type_, f"{what}.{name}")


def _shaped_plain(value: Any, kind: Any, inner: tuple[Any, ...], what: str) -> None:
    types, name = _KINDS[kind]
    _need(isinstance(value, types), what, name)
    if isinstance(value, Mapping):
        for key, one in value.items():
            shaped(key, inner[0], f"a key of {what}")
            shaped(one, inner[1], f"{what}.{key}")
    elif isinstance(value, tuple | list):
        free = Ellipsis in inner or kind is not tuple
        _need(free or len(value) == len(inner), what, f"a list of {len(inner)}")
        for place, one in enumerate(value):
            one_kind = inner[0 if free else place]
            shaped(one, one_kind, f"{what}[{place}]")
    elif isinstance(value, int | float) and kind is not bool:
        _need(abs(value) < _LARGEST and not isinstance(value, bool), what, name)  # no NaN is


@cache
def _fields(kind: Any) -> tuple[tuple[str, Any, bool], ...]:
    """Names, types, and whether there is no default."""
    types = get_type_hints(kind)
    return tuple((f.name, types[f.name], f.default is MISSING and f.default_factory is MISSING) for f in fields(kind))


def _need(is_so: bool, what: str, expected: str) -> None:
    if not is_so:
        raise ValueError(f"{what} is not {expected}")
