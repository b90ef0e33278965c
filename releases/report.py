"""List and pack the reports of a release that are published: tables, figures, pages, and traces.

A report's *lines* are its JSON Lines files (traces), which are published gzipped. Reports go into the repo of the
verified benchmarks, under their paths in the release, so that scores are beside their questions. `datasets` does not
read them as rows, as the card names the files of each config.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path

from safe_stepwise.store.files import write_parts
from safe_stepwise.store.names import BLOCKS, REPORT

MAX_PACKED_BYTES = 1 << 30
"""The maximum number of bytes of a file of lines that is packed; the check of secrets unpacks no more."""
LINES, PACKED = ".jsonl", ".gz"
_PACKED_LINES = LINES + PACKED


def folders(root: Path) -> list[Path]:
    """List every folder of reports in a release: the main one, those of its blocks, and of the blocks' adapters."""
    blocks = [folder for level in ("*", "*/*") for folder in (root / BLOCKS).glob(f"{level}/{REPORT}")]
    return [folder for folder in (root / REPORT, *sorted(blocks)) if folder.is_dir()]


def pack(root: Path) -> None:
    """Write a gzip copy beside each file of lines of a report, unless it is longer than `MAX_PACKED_BYTES`."""
    for folder in folders(root):
        for packed in folder.rglob(f"*{_PACKED_LINES}"):
            if not packed.with_suffix("").is_file():  # of an earlier run
                packed.unlink()
    for file in _list_line_files(root):
        packed = file.with_name(file.name + PACKED)
        if file.stat().st_size > MAX_PACKED_BYTES:
            packed.unlink(missing_ok=True)
        elif not packed.is_file() or packed.stat().st_mtime_ns < file.stat().st_mtime_ns:
            write_parts(packed, _gzip_file(file))


def published_files(root: Path) -> list[Path]:
    """List the published files of reports (lines packed); an older version packed no lines, and published none."""
    reports = [sorted(folder.rglob("*")) for folder in folders(root)]
    packed = [paths for paths in reports if any(path.name.endswith(_PACKED_LINES) for path in paths)]
    files = (path for paths in packed for path in paths)
    return [path for path in files if path.is_file() and path.suffix != LINES]


def long_files(root: Path) -> list[Path]:
    """List the files of lines that have more than `MAX_PACKED_BYTES` bytes, and so are not published."""
    return [file for file in _list_line_files(root) if file.stat().st_size > MAX_PACKED_BYTES]


def _gzip_file(file: Path) -> Iterator[bytes]:
    packing = zlib.compressobj(wbits=31)  # gzip with no file name and no time in its header, so bytes repeat
    with file.open("rb") as lines:
        while block := lines.read(1 << 20):
            yield packing.compress(block)
    yield packing.flush()


def _list_line_files(root: Path) -> Iterator[Path]:
    """Yield the files of lines in all reports, sorted within each folder."""
    for folder in folders(root):
        yield from sorted(path for path in folder.rglob(f"*{LINES}") if path.is_file())
