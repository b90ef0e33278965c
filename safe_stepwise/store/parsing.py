"""JSON of strangers, which may be nested, or written, so as to do harm."""

import json
from typing import Any, NoReturn

DEEPEST = 100
"""Objects and lists within each other; nothing that is written here goes half as deep."""


def parse_json(content: str | bytes) -> Any:
    """The value of a JSON document (UTF-8 if bytes).

    Raises ``ValueError``, and nothing else, for what is no JSON: NaN, nesting
    beyond `DEEPEST`.

    >>> parse_json('{"a": [1, 2]}')
    {'a': [1, 2]}
    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
    ValueError: nested more than 100 deep
    """
    text = content.decode("utf-8") if isinstance(content, bytes) else content
    try:
        value = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError(f"nested more than {DEEPEST} deep") from None
    if text.count("[") + text.count("{") > DEEPEST:
        _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST):
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [two for one in inner for two in one if isinstance(two, dict | list)]
        if not level:
            return
    raise ValueError(f"nested more than {DEEPEST} deep")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
