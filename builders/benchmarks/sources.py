"""Read raw rows from a local JSON, JSONL, CSV or Parquet file, or from a Hub dataset at a revision.

Rows are streamed, so memory does not grow with the source. A chunk of them can be pickled to a worker, which decodes
and parses it. A JSONL line travels as text, so that the reading process parses no JSON. The first bytes of a
file decide its format, not its name: an array in a ``.jsonl``, lines in a ``.json``, gzip with or without ``.gz`` are
all read. Only CSV needs its name, ``.csv`` or ``.tsv``: its first line has the columns, and empty cells are none.
SQuAD's object of articles, paragraphs and questions gives a row a question.
"""

import csv
import hashlib
import io
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple, TypeVar

from builders.benchmarks.hub import HubSource, resolve_commit, stream
from builders.work.rejects import Reject, RowsSummary
from safe_stepwise.errors import RowError, UserError
from safe_stepwise.records import canonical_json
from safe_stepwise.store import boundary, fields, files
from safe_stepwise.store.rows import FIELDS

_SPLITS = {"train": "train", "validation": "validation", "dev": "validation", "test": "test"}
_FILE_SUFFIXES = (".json", ".jsonl", ".parquet", ".gz", ".zip", ".txt", ".csv")
_JSON_SPACE = " \t\r\n"
"""White space allowed between the parts of JSON."""
_JSON_SPACE_BYTES = _JSON_SPACE.encode()
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_CSV_ERROR = "not in CSV"
"""The key of a CSV row that can't be read; its value is the reason."""
_SQUAD_START = re.compile(rb'\s*\{\s*(?:"version"\s*:\s*[^,]{1,40},\s*)?"data"\s*:\s*\[')
"""The beginning of SQuAD's object."""
MAX_ROW_BYTES = 4 * 2**20
"""The maximum number of bytes of a row's JSON; the longest row of the benchmarks has less than a hundredth of it."""


class RawRow(NamedTuple):
    """An undecoded row (JSON text, or the row itself if the source had to decode it) and its location.

    ``location`` is ``dev.jsonl:17`` (line, from 1), ``dev.json[17]`` or ``hub-id@rev[17]`` (element, from 0), without
    the folder.
    """

    location: str
    payload: str | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class InputSource:
    """A source in a build's record; ``digest`` is the SHA-256 of a file or spec, or the commit of a Hub dataset."""

    name: str
    digest: str
    synthetic: bool = False

    @classmethod
    def describe(cls, source: str, synthetic: bool = False) -> "InputSource":
        """Describe a file or Hub dataset for a record; raise ``UserError`` if it can't be read."""
        return cls(Path(source).name if Path(source).exists() else source, digest(source), synthetic)


def canonical_split(name: str) -> str:
    """Return ``train``, ``validation`` or ``test``; raise ``UserError`` for any other name.

    >>> canonical_split("dev")
    'validation'
    """
    if name not in _SPLITS:
        raise UserError(f"no split {name!r}: write one of {', '.join(_SPLITS)}")
    return _SPLITS[name]


def read_rows(source: str, split: str, limit: int | None = None) -> Iterator[RawRow]:
    """Yield the rows of a file or Hub dataset in order, at most ``limit``.

    Raises ``UserError`` in the call if the source can't be opened, and during iteration if it is damaged or has no
    rows. A single bad JSONL line fails only in `decode`.
    """
    split = canonical_split(split)
    if limit is not None and limit < 1:
        raise UserError(f"--limit {limit}: write a number of rows from 1")
    return require_rows(islice(_iterate_rows(source, split), limit), source)


def require_rows(rows: Iterator[RawRow], source: object) -> Iterator[RawRow]:
    """Yield the rows; raise ``UserError`` during iteration if a source has none."""
    first = [*islice(rows, 1)]
    if not first:
        raise UserError(f"{source} holds no rows")
    yield from chain(first, rows)


def in_chunks(rows: Iterator[RawRow], size: int) -> Iterator[tuple[int, tuple[RawRow, ...]]]:
    """Yield rows ``size`` at a time, each time after the number of rows before them."""
    start = 0
    while batch := tuple(islice(rows, size)):
        yield start, batch
        start += len(batch)


def decode(row: RawRow) -> Mapping[str, Any]:
    """Return the row as an object; raise ``RowError`` if it is none, is bad JSON or UTF-8, or is too long."""
    if not isinstance(row.payload, str):
        if _CSV_ERROR in row.payload:
            raise RowError(str(row.payload[_CSV_ERROR]))
        return row.payload
    if len(row.payload.encode("utf-8", "surrogateescape")) > MAX_ROW_BYTES:
        raise RowError(f"longer than {MAX_ROW_BYTES:,} bytes")
    try:
        row.payload.encode("utf-8")
        value = boundary.parse_json(row.payload)
    except UnicodeEncodeError as error:
        raise RowError(f"not UTF-8 at column {error.start + 1}") from error
    except ValueError as error:
        raise RowError(f"bad JSON: {error}") from error
    if not isinstance(value, dict):
        raise RowError("not a JSON object: a row is an object with named fields")
    return value


def digest(source: str) -> str:
    """Return the SHA-256 of a file (64 hex digits) or a Hub commit (40); raise ``UserError`` if it can't be read."""
    if (hub := _parse_hub_source(source)) is not None:
        return resolve_commit(hub)
    try:
        return files.sha256_of(Path(source))
    except OSError as error:
        raise UserError(f"{source}: can't be read: {error.strerror}") from error


def _parse_hub_source(source: str) -> HubSource | None:
    """Return the Hub dataset that the source names, or None if it names a local file."""
    if os.path.isfile(source):
        return None
    if os.path.exists(source):
        raise UserError(f"{source} is no regular file: name a file")
    hub = HubSource.read(source)
    if hub is None or (hub.revision is None and source.lower().endswith(_FILE_SUFFIXES)):
        raise UserError(f"{source}: no such file (a Hub dataset is written namespace/name@<commit or tag>)")
    return hub


def _iterate_rows(source: str, split: str) -> Iterator[RawRow]:
    if (hub := _parse_hub_source(source)) is not None:
        return (RawRow(f"{source}[{index}]", plain(row)) for index, row in enumerate(stream(hub, split)))
    return _read_file(Path(source))


def _read_file(path: Path) -> Iterator[RawRow]:
    try:
        with files.open_unpacked(path) as file:
            magic = file.read(4)
            file.seek(0)
            if magic == b"PAR1":
                yield from _read_parquet(path)
            elif magic.startswith(b"PK\x03\x04"):
                raise UserError(f"{path} is a zip archive: unpack it and name the file inside")
            elif delimiter := next((d for suffix, d in _DELIMITERS.items() if suffix in path.suffixes), ""):
                yield from _read_csv(file, path, delimiter)
            else:
                yield from _read_json(file, path)
    except (EOFError, zlib.error, OSError) as error:
        raise UserError(f"{path}: can't be read to its end: {error}") from error


def _read_csv(file: BinaryIO, path: Path, delimiter: str) -> Iterator[RawRow]:
    csv.field_size_limit(MAX_ROW_BYTES)
    text = io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="")
    lines = csv.reader(text, delimiter=delimiter, strict=True)
    try:
        names = next(lines, [])
        "".join(names).encode()
    except (csv.Error, UnicodeEncodeError) as error:
        raise UserError(f"{path}:1: is no CSV in UTF-8: {error}") from None
    if repeated := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise UserError(f"{path}:1: names the column {repeated[0]!r} twice; give each its own name")
    while True:
        first = lines.line_num + 1
        try:
            if not (cells := next(lines)):
                continue
            "".join(cells).encode()
            reason = f"has {len(cells)} cells, more than the {len(names)} columns" if len(cells) > len(names) else ""
        except StopIteration:
            return
        except UnicodeEncodeError:
            reason = "not UTF-8"
        except csv.Error as error:
            if "end of data" in str(error):
                raise UserError(f"{path}:{first}: a quotation mark opens here or below, and none closes it") from None
            span = f" (lines {first} to {lines.line_num})" if first < lines.line_num else ""
            cells, reason = [], f"no CSV: {error}{span}"
        row = {name: cell for name, cell in zip(names, cells, strict=False) if cell}
        yield RawRow(f"{path.name}:{lines.line_num}", {_CSV_ERROR: reason, "cells": cells} if reason else row)


def _read_json(file: BinaryIO, path: Path) -> Iterator[RawRow]:
    head = file.read(3)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise UserError(f"{path} is UTF-16: save it as UTF-8")
    start = 3 if head == b"\xef\xbb\xbf" else 0
    first = _read_first_byte(file, start)
    if not first:
        raise UserError(f"{path} is empty")
    if _SQUAD_START.match(file.read(4096)) and (articles := _read_articles(file, start)) is not None:
        return _read_squad(articles, path)
    file.seek(start)
    if first == b"[":
        return _read_array(file, path)
    if first == b"{" or ".jsonl" in path.suffixes:
        return _read_json_lines(file, path)
    raise UserError(f"{path} is neither JSON, JSON lines, CSV (named .csv) nor Parquet")


def _read_articles(file: BinaryIO, start: int) -> list[Any] | None:
    """Return the articles of SQuAD's object; None for any other content."""
    file.seek(start)
    with suppress(ValueError):
        content = boundary.parse_json(file.read())
        if isinstance(content, dict) and any("paragraphs" in a for a in content["data"] if isinstance(a, dict)):
            return list(content["data"])
    return None


def _read_squad(articles: Sequence[Any], path: Path) -> Iterator[RawRow]:
    """Yield a row for each question; an entry that is not a question becomes a row that `decode` refuses."""

    def entries(parent: Any, name: str) -> list[Any]:
        value = parent.get(name) if isinstance(parent, Mapping) else None
        return value if isinstance(value, list) else [None]

    for a, article in enumerate(articles):
        for p, paragraph in enumerate(entries(article, "paragraphs")):
            for q, question in enumerate(entries(paragraph, "qas")):
                location = f"{path.name}:data[{a}].paragraphs[{p}].qas[{q}]"
                if not isinstance(question, Mapping):
                    yield RawRow(location, json.dumps(question))
                    continue
                answers = [x.get("text") if isinstance(x, Mapping) else x for x in entries(question, "answers")]
                texts = [x for n, x in enumerate(answers) if x is not None and x not in answers[:n]]
                passage = {"title": article.get("title"), "context": paragraph.get("context")}
                yield RawRow(location, {**question, **passage, "answers": texts})


def _read_first_byte(file: BinaryIO, start: int) -> bytes:
    """Return the first byte from ``start`` that is not white space; the file is left at ``start``."""
    file.seek(start)
    first = b""
    while not first and (block := file.read(4096)):
        first = block.lstrip(_JSON_SPACE_BYTES)[:1]
    file.seek(start)
    return first


def _read_json_lines(file: BinaryIO, path: Path) -> Iterator[RawRow]:
    for number, raw in enumerate(_read_lines(file), 1):
        line = raw if len(raw) > MAX_ROW_BYTES else raw.rstrip(_JSON_SPACE_BYTES)
        if number == 1 and line == b"{":
            raise UserError(f"{path} is one JSON object over many lines: give an array of rows, or a row a line")
        if line:
            # Bytes that aren't UTF-8 survive as lone surrogates, for `decode` to report by row.
            yield RawRow(f"{path.name}:{number}", line.decode("utf-8", "surrogateescape"))


def _read_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines; a line too long for a row is cut just above the limit."""
    limit = MAX_ROW_BYTES + 1
    while line := file.readline(limit):
        piece = line
        while len(piece) == limit and not piece.endswith(b"\n"):
            piece = file.readline(limit)
        yield line


def _read_array(file: BinaryIO, path: Path) -> Iterator[RawRow]:
    number = -1
    try:
        for number, element in enumerate(array_elements(file, MAX_ROW_BYTES)):
            yield RawRow(f"{path.name}[{number}]", element)
    except ValueError as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else error
        size = path.stat().st_size
        raise UserError(f"{path}: damaged or cut short ({size} bytes): element [{number + 1}]: {reason}") from error


def _read_parquet(path: Path) -> Iterator[RawRow]:
    from pyarrow.parquet import ParquetFile

    number = -1
    try:
        with ParquetFile(path) as file:
            rows = (row for batch in file.iter_batches(batch_size=256) for row in batch.to_pylist())
            for number, row in enumerate(rows):
                yield RawRow(f"{path.name}[{number}]", plain(row))
    except Exception as error:  # each type of a column raises its own errors: time zones, years, UTF-8
        reason = str(error).partition("\n")[0]
        raise UserError(f"{path}: damaged or cut short, row {number + 1} or after: {reason}") from error


def plain(row: Any) -> Any:
    """Convert a row of Parquet or `datasets` to JSON; what JSON can't have becomes an object naming its type.

    >>> plain({"idx": 3, "made": b"?", "share": float("nan")})
    {'idx': 3, 'made': {'not in JSON': 'bytes'}, 'share': {'not in JSON': 'NaN'}}
    """
    text = json.dumps(row, default=lambda value: {fields.NO_JSON: type(value).__name__})
    return json.loads(text, parse_constant=lambda name: {fields.NO_JSON: name})


_BLOCK = 2**16
# It finds the end of a value; numbers are not converted, however long they are.
_DECODER = json.JSONDecoder(parse_int=bool, parse_float=bool, parse_constant=bool)
_SPACES = re.compile(f"[{_JSON_SPACE}]*")


def array_elements(file: BinaryIO, max_length: int) -> Iterator[str]:
    """Yield the elements of a JSON array as text; raise ``ValueError`` if it is damaged or an element is too long."""
    stream = io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="")
    text, position, delimiter = "", 0, "["
    while delimiter:
        try:
            element, end = _read_element(text, position, delimiter)
        except RecursionError:
            raise ValueError("nested too deep") from None
        except json.JSONDecodeError:
            available = len(text) - position
            if available > max_length:
                raise ValueError(f"longer than {max_length:,}, or damaged") from None
            block = stream.read(max(_BLOCK, available))  # doubles the text, so the total work is linear
            if not block:
                raise
            text, position = text[position:] + block, 0
            continue
        if element is not None:
            yield element
        position, delimiter = end, "" if element is None else ","
    rest = chain([text[position:]], iter(lambda: stream.read(_BLOCK), ""))
    if any(block.strip(_JSON_SPACE) for block in rest):
        raise ValueError("more text after the array")


def _read_element(text: str, position: int, delimiter: str) -> tuple[str | None, int]:
    """Return the element after ``[`` or a comma, None at the end, and the position after it.

    Raises ``JSONDecodeError`` if the text is bad or ends inside the element.
    """
    start = _skip_space(text, position)
    if delimiter == "," and text[start : start + 1] == "]":
        return None, start + 1
    if text[start : start + 1] != delimiter:
        raise json.JSONDecodeError(f"expected {delimiter}", text, start)
    start = _skip_space(text, start + 1)
    if delimiter == "[" and text[start : start + 1] == "]":
        return None, start + 1
    _, end = _DECODER.raw_decode(text, start)
    if text[end : end + 1] in ("", *"+-.eE"):  # a number may go on
        raise json.JSONDecodeError("cut short", text, end)
    return text[start:end], end


def _skip_space(text: str, position: int) -> int:
    spaces = _SPACES.match(text, position)
    return spaces.end() if spaces else position


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RowsChunk:
    """Consecutive rows of a source from row ``start`` on (from 0), and the folder of their shard."""

    benchmark: str
    split: str
    start: int
    rows: tuple[RawRow, ...]
    folder: Path

    summary_kind: ClassVar[type[RowsSummary]] = RowsSummary

    @property
    def size(self) -> int:
        return len(self.rows)

    def location(self, index: int) -> str:
        return self.rows[index].location

    def parsed(self, parse: Callable[[Mapping[str, Any]], T], rejects: list[Reject]) -> Iterator[tuple[int, T]]:
        """Yield the index of each row and what ``parse`` returns for it; unreadable rows are added to ``rejects``."""
        for index, raw in enumerate(self.rows):
            content: Any = None
            try:
                content = decode(raw)
                parsed = parse(content)
            except RowError as error:
                row = raw.payload if content is None else content
                rejects.append(Reject(index, raw.location, id_of(content), str(error), row))
                continue
            yield index, parsed

    def digest(self, head: Sequence[Any]) -> str:
        """Return the SHA-256 (64 hex digits) of ``head`` (settings the chunk depends on) and of the located rows."""
        digest = hashlib.sha256(canonical_json(head).encode())
        for row in self.rows:
            content = row.payload if isinstance(row.payload, str) else canonical_json(row.payload)
            digest.update(f"{row.location}\0{content}\0".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


def id_of(content: Any) -> str | None:
    """Return the id that a broken row claims to have, under any name that it may have."""
    ids = [content.get(key) for key in FIELDS["id"]] if isinstance(content, Mapping) else []
    return next((str(id_) for id_ in ids if isinstance(id_, str | int) and not isinstance(id_, bool)), None)
