"""JSON of strangers, which may be nested, or written, so as to do harm."""

import json
import math
from pathlib import Path
from typing import Any, NoReturn

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
    with file.open("rb") as opened:
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
