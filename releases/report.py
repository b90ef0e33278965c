"""The reports of a release as they are published: tables, figures, pages, and packed traces.

They go into the repo of the verified benchmarks, under the paths that they have in the release: a
score is then found at the revision of the very questions that it was measured on, and a release
stays five artifacts. `datasets` never takes them for rows, as the card names the files of each
config.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path

from safe_stepwise.store.files import write_parts
from safe_stepwise.store.names import BLOCKS, REPORT

MOST = 1 << 30
"""Bytes of lines that are packed: what a check of secrets unpacks. A file of more stays here."""
LINES, PACKED = ".jsonl", ".gz"
_PACKED_LINES = LINES + PACKED


def folders(root: Path) -> list[Path]:
    """Every folder of reports in a release: its own, its blocks', those of their adapters."""
    blocks = (root / BLOCKS).glob(f"*/{REPORT}"), (root / BLOCKS).glob(f"*/*/{REPORT}")
    reports = [root / REPORT, *sorted(folder for places in blocks for folder in places)]
    return [folder for folder in reports if folder.is_dir()]


def pack(root: Path) -> None:
    """Put beside each file of lines in a report its packed form; the same lines, the same bytes.

    One of more than `MOST` bytes gets none.
    """
    for folder in folders(root):
        for packed in folder.rglob(f"*{_PACKED_LINES}"):
            if not packed.with_suffix("").is_file():  # of an earlier run
                packed.unlink()
    for file in _lines(root):
        packed = file.with_name(file.name + PACKED)
        if file.stat().st_size > MOST:
            packed.unlink(missing_ok=True)
        elif not packed.is_file() or packed.stat().st_mtime_ns < file.stat().st_mtime_ns:
            write_parts(packed, _gzipped(file))


def published(root: Path) -> list[Path]:
    """What of a release's reports is published: all but the lines, which go packed.

    A report without any was made by an older version, and stays as it was published: without it.
    """
    reports = [sorted(folder.rglob("*")) for folder in folders(root)]
    packed = [paths for paths in reports if any(path.name.endswith(_PACKED_LINES) for path in paths)]
    files = (path for paths in packed for path in paths)
    return [path for path in files if path.is_file() and path.suffix != LINES]


def too_long(root: Path) -> list[Path]:
    """Files of lines that are not packed, so that they stay here."""
    return [file for file in _lines(root) if file.stat().st_size > MOST]


def _gzipped(file: Path) -> Iterator[bytes]:
    packing = zlib.compressobj(wbits=31)  # as gzip does, with neither name nor time in its head
    with file.open("rb") as lines:
        while block := lines.read(1 << 20):
            yield packing.compress(block)
    yield packing.flush()


def _lines(root: Path) -> Iterator[Path]:
    for folder in folders(root):
        yield from sorted(path for path in folder.rglob(f"*{LINES}") if path.is_file())
