"""A knowledge graph's file: a triple a line, ``head|relation|tail`` or with tabs, gzipped or not.

The first line says which of the two parts the names; the other may stand in them.
"""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from safe_stepwise.errors import UserError

NamedTriple = tuple[str, str, str]
"""Head, relation, tail: their names."""
_GZIP = b"\x1f\x8b"


def read_triples(file: Path) -> Iterator[NamedTriple]:
    """The triples of a file in order, streamed; blank lines are none, blanks around names stay.

    Raises ``UserError``, with the line, for what is no triple or no UTF-8, and for a file that
    can't be read to its end or has no triples.
    """
    number = 0
    try:
        with file.open("rb") as raw:
            packed = raw.read(2) == _GZIP
            raw.seek(0)
            stream = cast(BinaryIO, gzip.open(raw)) if packed else raw
            mark = ""
            for number, line in enumerate(stream, 1):
                text = line.decode("utf-8").rstrip("\r\n")
                if text:
                    mark = mark or ("\t" if text.count("\t") == 2 else "|")
                    yield _triple(text, mark)
            if not mark:
                raise UserError(f"{file}: holds no triples; give a graph, head|relation|tail a line")
    except ValueError as error:
        reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else error
        raise UserError(f"{file}:{number}: {reason}") from None
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{file}: can't be read to its end: {reason}") from None


def _triple(text: str, mark: str) -> NamedTriple:
    parts = text.split(mark)
    if len(parts) != 3 or not all(parts):
        form = "|".join(("head", "relation", "tail")) if mark == "|" else "head, relation, tail"
        raise ValueError(f"{text[:80]!r} is no triple; write {form}, each with a name")
    return parts[0], parts[1], parts[2]
