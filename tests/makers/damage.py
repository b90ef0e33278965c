"""What may befall a file: a fixed list of damages, each the same every time."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

DEEP = 100_000
Damage = Callable[[bytes], bytes]


def flipped(seed: int, places: int = 3) -> Damage:
    """Some bytes replaced by others."""

    def damage(content: bytes) -> bytes:
        rng, changed = random.Random(seed), bytearray(content)
        for _ in range(places):
            changed[rng.randrange(len(changed))] ^= rng.randrange(1, 256)
        return bytes(changed)

    return damage


def cut(share: float) -> Damage:
    return lambda content: content[: int(len(content) * share)]


def with_value(seed: int, raw: bytes) -> Damage:
    """One of the values of the JSON, by a draw, written otherwise."""

    def damage(content: bytes) -> bytes:
        found = [*_VALUE.finditer(content)]
        if not found:
            return raw
        place = random.Random(seed).choice(found)
        return content[: place.start(1)] + raw + content[place.end(1) :]

    return damage


def without_key(seed: int) -> Damage:
    """One of the keys of the JSON, by a draw, under another name."""

    def damage(content: bytes) -> bytes:
        found = [*_KEY.finditer(content)]
        if not found:
            return b"{}"
        place = random.Random(seed).choice(found)
        return content[: place.start()] + b'"gone":' + content[place.end() :]

    return damage


_STRING = rb'"(?:[^"\\]|\\.)*"'
_VALUE = re.compile(rb":\s*(" + _STRING + rb"|-?[\d.]+|true|false|null)")
_KEY = re.compile(_STRING + rb"\s*:")


def _first_line_twice(content: bytes) -> bytes:
    line, *_ = content.split(b"\n")
    return line + b"\n" + content


BYTES: dict[str, Damage] = {
    **{f"flip {n}": flipped(n) for n in range(4)},
    "flip many": flipped(9, 200),
    "cut 10": cut(0.1),
    "cut 60": cut(0.6),
    "cut 99": cut(0.99),
    "empty": lambda _: b"",
    "zeros": lambda content: bytes(len(content)),
    "other": lambda _: b"GIF89a and then something else \x00\xff" * 9,
}
"""For any file."""

TEXT: dict[str, Damage] = {
    **BYTES,
    "twice": _first_line_twice,
    "mark": lambda content: b"\xef\xbb\xbf" + content,
    "crlf": lambda content: content.replace(b"\n", b"\r\n"),
    "utf-16": lambda content: content.decode().encode("utf-16"),
    "gzip": lambda content: gzip.compress(content, mtime=0),
    "torn gzip": lambda content: gzip.compress(content, mtime=0)[:-9],
    "broken gzip": lambda content: flipped(3, 20)(gzip.compress(content, mtime=0))[:-1],
    "nul": lambda content: content.replace(b'": "', b'": "\x00', 1),
    "bytes": lambda content: content.replace(b'": "', b'": "\xff\xfe', 1),
    "deep list": lambda _: b"[" * DEEP,
    "deep object": lambda _: b'{"a":' * DEEP,
    "deep line": lambda content: content + b"[" * DEEP + b"]" * DEEP + b"\n",
    "list": lambda _: b"[1, null, []]\n",
    "scalar": lambda _: b"17\n",
    "null": lambda _: b"null\n",
    "no keys": lambda _: b"{}\n",
    **{f"key {n}": without_key(n) for n in range(6)},
    **{
        f"value {n} {name}": with_value(n, raw)
        for n in range(3)
        for name, raw in {
            "null": b"null",
            "number": b"-7",
            "text": b'"x"',
            "list": b'["x", 1]',
            "object": b'{"x": 1}',
            "true": b"true",
            "nan": b"NaN",
            "infinity": b"-Infinity",
            "huge": b"1e999",
            "long": b"1" * 10_000,
            "big": b"1" * 40,
            "half": b'"\\ud800"',
            "ansi": b'"\\u001b[31mq\\u202e\\nq\\u0000"',
            "deep": b"[" * 150 + b"]" * 150,
            "deeper": b"[" * DEEP + b"]" * DEEP,
        }.items()
    },
}
"""For one that holds JSON."""


def lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def cases(damages: dict[str, Damage], content: bytes) -> Iterator[tuple[str, bytes]]:
    """Each damage with what it makes of a content."""
    yield from ((name, damage(content)) for name, damage in damages.items())
