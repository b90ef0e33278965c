"""A knowledge graph's file: a triple a line, ``head|relation|tail`` or with tabs, gzipped or not.

The first line says which of the two parts the names; the other may stand in them.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path

from safe_stepwise.errors import UserError
from safe_stepwise.store.files import unpacked

NamedTriple = tuple[str, str, str]
"""Head, relation, tail: their names."""


def read_triples(file: Path) -> Iterator[NamedTriple]:
    """The triples of a file in order, streamed; empty lines are none, blanks around names stay.

    Raises ``UserError``, with the line, for what is no triple or no UTF-8, and for a file that
    can't be read to its end or has no triples.
    """
    mark, number = "", 0
    try:
        with unpacked(file) as lines:
            for line in lines:
                number += 1
                text = _text(line, file, number)
                if not text:
                    continue
                mark = mark or ("\t" if text.count("\t") == 2 else "|")
                parts = text.split(mark)
                if len(parts) != 3 or not all(parts):
                    raise UserError(f"{file}:{number}: {_refused(text, mark)}")
                yield parts[0], parts[1], parts[2]
    except (OSError, EOFError, zlib.error) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise UserError(f"{file}: can't be read to its end: {said}") from None
    if not mark:
        raise UserError(f"{file}: holds no triples; write head|relation|tail, one a line")


def _text(line: bytes, file: Path, number: int) -> str:
    try:
        return line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise UserError(f"{file}:{number}: not UTF-8; save the graph as UTF-8") from None


def _refused(text: str, mark: str) -> str:
    form = "head|relation|tail" if mark == "|" else "head, relation and tail with tabs between"
    return f"{text[:80]!r} is no triple; write {form}, each with a name"
