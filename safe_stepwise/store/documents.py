"""YAML and JSON that people write, and change: nothing in it is lost, or more than it seems."""

import json
from pathlib import Path
from typing import Any

import yaml

from safe_stepwise.errors import UserError
from safe_stepwise.store.parsing import DEEPEST, MOST_JSON, parse_json, read_bounded
from safe_stepwise.store.terminal import printable

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
        _check_depth(text)
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
    try:
        return parse_yaml(content)
    except ValueError as error:
        raise UserError(f"{file}: {error}") from None


def read_object(file: Path) -> dict[str, Any]:
    """The object of a JSON file; raises ``UserError`` for what is none, or says a key twice."""
    content = content_of(file, MOST_JSON)
    try:
        value = parse_json(content)
        json.loads(content, object_pairs_hook=_once)
    except _Twice as twice:
        try:
            parse_yaml(content)  # as which it has lines
        except ValueError as error:
            raise UserError(f"{file}: {error}") from None
        raise UserError(f"{file}: the key {printable(str(twice))} is there twice") from None
    except ValueError as error:
        raise UserError(f"{file}: not JSON ({printable(str(error))})") from None
    if not isinstance(value, dict):
        raise UserError(f"{file}: holds no object of JSON")
    return value


class _Twice(Exception):
    """A key of JSON."""


def _once(pairs: list[tuple[str, Any]]) -> None:
    seen = set()
    for key, _ in pairs:
        if key in seen:
            raise _Twice(key)
        seen.add(key)


class _Refused(ValueError):
    """What a document may not hold, though it is YAML."""


def _check_depth(text: str) -> None:
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
