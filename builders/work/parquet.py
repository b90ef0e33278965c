"""Write a dataset's Parquet files in a stream, with the same bytes for the same rows; order rows for KTO."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from safe_stepwise.records import identity

ROWS_PER_GROUP = 1_000
"""Rows of a row group: what a program that streams the file has in memory."""
ROWS_PER_FILE = 100_000


@dataclass(frozen=True, slots=True)
class SplitFiles:
    """The Parquet files of one split of one config; ``arrow_bytes`` counts the uncompressed rows in memory."""

    split: str
    rows: int
    bytes: int
    arrow_bytes: int
    files: tuple[str, ...]


FilesByConfig = dict[str, dict[str, SplitFiles]]
"""The files of a dataset, by config, then split."""


class DatasetWriter:
    """Writes the Parquet files of ``splits``, pairs (config, split), each config into a folder of its name."""

    def __init__(self, folder: Path, splits: Iterable[tuple[str, str]], features: Callable[[str], Any]) -> None:
        self._writers = {
            (config, split): SplitWriter(folder / config, split, features(config)) for config, split in splits
        }

    def add(self, config: str, split: str, rows: pa.Table | Sequence[Mapping[str, Any]]) -> None:
        writer = self._writers[config, split]
        writer.add(rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows, schema=writer.schema))

    def close(self) -> FilesByConfig:
        """Write the rows that wait for a full row group, and return the files of all splits."""
        files: FilesByConfig = {}
        for (config, split), writer in self._writers.items():
            files.setdefault(config, {})[split] = writer.close()
        return files


class SplitWriter:
    """Writes ``SPLIT-NNNNN-of-MMMMM.parquet`` a row group at a time; no file without rows, which none can open."""

    def __init__(self, folder: Path, split: str, features: Any) -> None:
        self._folder, self._split = folder, split
        self.schema: pa.Schema = features.arrow_schema
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self._writer: pq.ParquetWriter | None = None
        self._file_rows: list[int] = []
        self._arrow_bytes = 0

    def add(self, table: pa.Table) -> None:
        """Append rows; drop columns that the split does not have."""
        table = table.select(self.schema.names).replace_schema_metadata(self.schema.metadata)
        self._waiting.append(table)
        self._waiting_rows += table.num_rows
        while self._waiting_rows >= ROWS_PER_GROUP:
            self._write_group(ROWS_PER_GROUP)

    def close(self) -> SplitFiles:
        """Write the rows that wait for a full row group, flush to disk, and give the files their final names."""
        if self._waiting_rows:
            self._write_group(self._waiting_rows)
        self._close_file()
        names = []
        for number in range(len(self._file_rows)):
            name = f"{self._split}-{number:05d}-of-{len(self._file_rows):05d}.parquet"
            self._partial(number).rename(self._folder / name)
            names.append(name)
        return SplitFiles(
            split=self._split,
            rows=sum(self._file_rows),
            bytes=sum((self._folder / name).stat().st_size for name in names),
            arrow_bytes=self._arrow_bytes,
            files=tuple(names),
        )

    def _write_group(self, rows: int) -> None:
        table = pa.concat_tables(self._waiting)
        group, remainder = table.slice(0, rows).combine_chunks(), table.slice(rows)
        self._waiting, self._waiting_rows = [remainder], remainder.num_rows
        if self._writer is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file_rows.append(0)
            self._writer = pq.ParquetWriter(self._partial(len(self._file_rows) - 1), self.schema, compression="zstd")
        self._writer.write_table(group, row_group_size=ROWS_PER_GROUP)
        self._file_rows[-1] += rows
        self._arrow_bytes += group.nbytes
        if self._file_rows[-1] >= ROWS_PER_FILE:
            self._close_file()

    def _close_file(self) -> None:
        if self._writer is None:
            return
        self._writer.close()
        self._writer = None
        with self._partial(len(self._file_rows) - 1).open("rb") as file:
            os.fsync(file.fileno())

    def _partial(self, number: int) -> Path:
        return self._folder / f"{self._split}-{number:05d}.part"


R = TypeVar("R")


def interleave(rows: Sequence[R], seed: int, key: Callable[[R], str]) -> list[R]:
    """Order rows so that neighbours belong to different questions (``key``), as far as that is possible.

    TRL's KTO takes a row's neighbour in its batch for an answer to another question. The rows of each question are
    spread evenly; where two still meet, the second is swapped with the next other row, or moved back to the last gap.

    >>> interleave(["a1", "a2", "b1", "b2"], 0, lambda row: row[0])
    ['b1', 'a1', 'b2', 'a2']
    """
    keys = list(map(key, rows))
    sizes, counts = Counter(keys), Counter[str]()
    positions: list[tuple[float, int]] = []
    for number, name in enumerate(keys):
        share = int(identity([seed, name])[:8], 16) / 2**32  # depends on the question alone
        positions.append(((counts[name] + share) / sizes[name], number))
        counts[name] += 1
    order = [number for _, number in sorted(positions)]
    for position in range(1, len(order)):
        name = keys[order[position]]
        if name == keys[order[position - 1]]:
            later = next((n for n in range(position + 1, len(order)) if keys[order[n]] != name), None)
            if later is not None:
                order[position], order[later] = order[later], order[position]
            else:
                order.insert(_gap([keys[n] for n in order[:position]], name), order.pop(position))
    return [rows[number] for number in order]


def _gap(keys: Sequence[str], key: str) -> int:
    """Return the last position at which a row with ``key`` has no such neighbour; the end if there is none."""
    gaps = (n for n in reversed(range(len(keys))) if key not in keys[max(n - 1, 0) : n + 1])
    return next(gaps, len(keys))
