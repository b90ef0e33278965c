"""Sketches that stand for rendered figures in the quick suite.

Two thirds of what an evaluation costs with simulated players is matplotlib laying out and rendering its
figures. In the quick suite a figure is composed as ever, and saved as a picture of one dot with a digest
of its texts and numbers. Tests of figures themselves use the fixture `rendered`; `make test-full` renders
every figure.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from safe_stepwise.store import figures
from tests import sizes

render = figures._render


def use_sketches() -> None:
    """Have figures saved as sketches, unless tests run at full size."""
    if not sizes.is_full():
        figures._render = sketch


def sketch(figure: Any, form: str, _: dict[str, None]) -> bytes:
    """A picture of one dot that differs where the texts, the numbers or the size of a figure differ."""
    digest = hashlib.sha256()
    for part in _parts(figure):
        digest.update(part.encode() + b"\n")
    if form == "svg":
        return f'<svg xmlns="http://www.w3.org/2000/svg"><desc>{digest.hexdigest()}</desc></svg>'.encode()
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)),
        (b"tEXt", b"digest\x00" + digest.hexdigest().encode()),
        (b"IDAT", zlib.compress(b"\x00\x00")),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def _parts(figure: Any) -> Iterator[str]:
    """Size, titles, labels, texts, lines, boxes and their colours, in the order in which they were drawn."""
    yield repr(figure.get_size_inches().tolist())
    yield from (text.get_text() for text in figure.texts)
    for axes in figure.axes:
        yield from (axes.get_title(), axes.get_xlabel(), axes.get_ylabel())
        yield from (text.get_text() for text in axes.texts)
        yield from (repr(line.get_xydata().tolist()) for line in axes.lines)
        for patch in axes.patches:
            yield repr((patch.get_extents().bounds, patch.get_facecolor(), patch.get_label()))
        yield from (repr(image.get_array().tolist()) for image in axes.images)
        yield from (repr(collection.get_offsets().tolist()) for collection in axes.collections)
