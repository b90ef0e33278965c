"""Find secrets in files, also in gzip, compressed columns, base64 and escapes.

The type of a file is read from its first bytes, not from its name. A release packs lines with gzip and rows as
Parquet. A file of any other packed type is refused, as is one that can't be unpacked: its content is unknown.

The patterns are those of `safe_stepwise.store.terminal`. detect-secrets and similar packages take any digest for a
password (releases are full of digests), have no pattern of Hugging Face tokens and can't read compressed columns;
gitleaks and trufflehog are programs, and don't read Parquet either.
"""

import binascii
import gzip
import io
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import IO, Any

from releases.publish.folder import LocalFile
from safe_stepwise.errors import UserError
from safe_stepwise.store.terminal import PATTERNS, spellings

_COMPILED = [(name, start.encode(), re.compile((re.escape(start) + tail).encode())) for name, start, tail in PATTERNS]
KEY_BY_NAME = "a key, as the word before it says"
_WORDS = (b"api_key", b"apikey", b"api-key", b"token", b"authorization", b"secret")
_KEY_AND_MORE = re.compile(
    rb"[\s\"'`:=>\]\\]{1,12}(?:(?i:bearer|basic|token)[\s\"'=:]{1,4})?"
    rb"(?=[A-Za-z]{0,39}[0-9])(?=[0-9]{0,39}[A-Za-z])(?:[A-Za-z0-9]{32}|[A-Za-z0-9]{40})"
)
_KEY_AFTER_WORD = re.compile(_KEY_AND_MORE.pattern + rb"(?![A-Za-z0-9_+-])")
"""A key without a prefix (Mistral's, W&B's older ones): 32 or 40 letters and digits, like many digests.

`_KEY_AND_MORE` also matches if letters or digits follow, as where columns of Arrow store texts end to end.
"""
MAX_UNPACKED_BYTES = 1 << 30
"""The maximum number of bytes that a file may unpack to."""
MAX_ROW_GROUP_BYTES = 1 << 30
"""The maximum number of bytes of a decoded row group of Parquet."""
BLOCK, OVERLAP = 1 << 22, 1 << 16
"""Bytes that are searched together, and the last bytes of a block that are searched again with the next."""
MAX_BASE64_NESTING = 2
"""The maximum number of levels of base64 within base64."""
_MIN_BASE64_RUN = 24
"""The shortest run of base64 characters that is decoded; the shortest key takes 27."""
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_\r\n"
_IN_RUN = bytes(ord("a") if byte in _BASE64 else ord(".") for byte in range(256))
_QUOTED = re.compile(rb"""["'][ \t]{0,4}[,+\\]?[ \t]{0,4}(?:\r?\n)?[ \t>#]*+(?:[-+] )?["']""")
_INDENTED = re.compile(rb"""["']?\r?\n(?=[ \t>"'#-])[ \t>"'#]*+(?:- ["']?)?""")
"""Patterns between lines of base64 in JSON, notebooks, YAML, Markdown quotations and source code."""
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_STARTS = (rb"\\u00", rb"\\U000000", rb"\\x", b"%")
_ESCAPES = [re.compile(start + b"([2-7][0-9A-Fa-f])") for start in _STARTS]
"""A pattern for each start: that is ten times as fast as one pattern of alternatives."""
Unpack = Callable[[IO[bytes]], Iterator[bytes]]
"""A function that yields what a file packs."""


def secret_in(file: LocalFile, own_secrets: Mapping[str, str] | None = None) -> str | None:
    """Describe the first secret in a file or its path, or None; raise ``UserError`` if it can't be unpacked.

    ``own_secrets`` are credentials by name (`safe_stepwise.store.terminal.credentials`).
    """
    secret_forms = [(f"the value of {n}", form) for n, v in (own_secrets or {}).items() for form in _list_encodings(v)]
    packed, place = file.content, file.path if isinstance(file.content, bytes) else str(file.content)
    with io.BytesIO(packed) if isinstance(packed, bytes) else packed.open("rb") as content:
        for view in chain(readings(file.path.encode()), views(content, place)):
            for name, start, pattern in _COMPILED:
                # `in` is ten times as fast as the pattern.
                if start in view and pattern.search(view):
                    return name
            for name, form in secret_forms:
                if form in view:
                    return name
            if _has_named_key(view):
                return KEY_BY_NAME
    return None


def _has_named_key(view: bytes, pattern: re.Pattern[bytes] = _KEY_AFTER_WORD) -> bool:
    """Return whether text like a key follows directly after one of `_WORDS`.

    >>> _has_named_key(b"MISTRAL_API_KEY=" + b"aB3x" * 8), _has_named_key(b'"commit": "' + b"0f" * 20 + b'"')
    (True, False)
    """
    folded = view.lower()
    for word in _WORDS:
        end = folded.find(word)
        while end >= 0:
            if pattern.match(view, end := end + len(word)):
                return True
            end = folded.find(word, end)
    return False


def _list_encodings(value: str) -> Iterator[bytes]:
    """Yield the bytes of a credential in files; `readings` turns ASCII text of any encoding into the first form."""
    for form in sorted(spellings(value)):
        yield form.encode("utf-8", "surrogateescape")
    if not value.isascii():
        yield value.encode("utf-16-le", "surrogatepass")
        yield value.encode("utf-16-be", "surrogatepass")


def views(file: IO[bytes], name: str) -> Iterator[bytes]:
    """Yield every reading of a file and of what it packs, in blocks; raise ``UserError`` if that can't be."""
    yield from _read(file)
    file.seek(0)
    kind, unpack = _kind(file.read(512))
    if kind is None and zipfile.is_zipfile(file):  # after a prefix, as in a self-extracting archive
        kind, unpack = "zip", _refuse
    if kind is None:
        return
    file.seek(0)
    try:
        for content in unpack(file):
            yield from _read(io.BytesIO(content))
    except Exception as error:  # the decoders raise their own types
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"{name}: can't be read as {kind}, so nobody can say what it holds: {line}") from None


def readings(block: bytes, depth: int = MAX_BASE64_NESTING) -> Iterator[bytes]:
    r"""Yield a block, the block without UTF-16 and escapes, and what its base64 decodes to.

    >>> [*readings(rb"\u0068i")]
    [b'\\u0068i', b'hi']
    >>> [*readings("key".encode("utf-16-le"))][-1]
    b'key'
    """
    yield block
    plain = _plain(block)
    if plain != block:
        yield plain
    runs = [*_find_runs(_INDENTED.sub(b"\n", _QUOTED.sub(b"\n", plain)))] if depth else []
    for start in range(4 if runs else 0):  # a run may start at any of a group's four characters
        ends = (run[start:] for run in runs)
        yield from readings(b"\n".join(binascii.a2b_base64(end + b"A" * (-len(end) % 4)) for end in ends), depth - 1)


def _plain(block: bytes) -> bytes:
    """Return a block with its UTF-16 and UTF-32 (of either byte order) and its escapes as ASCII."""
    plain = block.replace(b"\0", b"")
    if b"\\" in plain:
        for escape, character in ((b"\\\\", b"\\"), (b"\\n", b"\n"), (b"\\/", b"/"), (b"\\_", b"_")):
            plain = plain.replace(escape, character)
    for code in _ESCAPES:
        plain = code.sub(lambda match: bytes.fromhex(match[1].decode()), plain)
    return plain


def _find_runs(block: bytes) -> Iterator[bytes]:
    """Yield the runs of characters that may be base64, without line ends."""
    marked = block.translate(_IN_RUN)  # `find` is ten times as fast as a pattern
    start = marked.find(b"a" * _MIN_BASE64_RUN)
    while start >= 0:
        end = marked.find(b".", start)
        run = block[start:end] if end >= 0 else block[start:]
        yield run.translate(_URL_SAFE, b"\r\n")
        start = marked.find(b"a" * _MIN_BASE64_RUN, end) if end >= 0 else -1


def _read(file: IO[bytes]) -> Iterator[bytes]:
    overlap = b""
    while block := file.read(BLOCK):
        yield from readings(overlap + block)
        overlap = block[-OVERLAP:]


def _kind(head: bytes) -> tuple[str | None, Unpack]:
    """Return the type of a packed file, for errors, and the function that unpacks it; None if it is not packed."""
    tar = "tar" if head[257:262] == b"ustar" else None
    return next(((kind, unpack) for magic, kind, unpack in _KINDS if head.startswith(magic)), (tar, _refuse))


def _refuse(file: IO[bytes]) -> Iterator[bytes]:
    raise ValueError("a release holds no such file; take it out, or unpack it")


def _read_gzip(file: IO[bytes]) -> Iterator[bytes]:
    size, overlap = 0, b""
    with gzip.GzipFile(fileobj=file, mode="rb") as stream:
        while block := stream.read(BLOCK):
            if not size and _kind(block[:512])[0] is not None:
                raise ValueError("what it packs is packed, too; unpack it")
            size += len(block)
            if size > MAX_UNPACKED_BYTES:
                raise ValueError(f"it unpacks to more than {MAX_UNPACKED_BYTES:,} bytes; publish it unpacked")
            yield overlap + block
            overlap = block[-OVERLAP:]


def _read_parquet(file: IO[bytes]) -> Iterator[bytes]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(file) as parquet:
        for number in range(parquet.num_row_groups):
            size = parquet.metadata.row_group(number).total_byte_size
            if size > MAX_ROW_GROUP_BYTES:
                raise ValueError(f"row group {number} is {size:,} bytes; write smaller ones")
        yield from _serialize_tables(parquet.iter_batches(batch_size=2000))


def _serialize_tables(batches: Any) -> Iterator[bytes]:
    """Yield batches of rows as Arrow streams, which have each column's texts end to end."""
    import pyarrow as pa

    sink, writer, has_key = io.BytesIO(), None, False
    for batch in batches:
        writer = writer or pa.ipc.new_stream(sink, batch.schema)
        writer.write_batch(batch)
        yield (stream := sink.getvalue())
        # Where a key ends shows only in its own text. A dictionary is in the first stream alone.
        has_key = has_key or _has_named_key(stream, _KEY_AND_MORE)
        if has_key:
            yield b"\n".join(_read_texts(batch.to_pylist()))
        sink.seek(0)
        sink.truncate()


def _read_texts(value: Any) -> Iterator[bytes]:
    """Yield the texts within a value of Arrow, each on its own."""
    if isinstance(value, str | bytes):
        yield value.encode() if isinstance(value, str) else value
    elif isinstance(value, dict | list | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _read_texts(inner)


_KINDS: tuple[tuple[bytes | tuple[bytes, ...], str, Unpack], ...] = (
    (b"\x1f\x8b", "gzip", _read_gzip),
    ((b"PAR1", b"PARE"), "Parquet", _read_parquet),
    ((b"PK\x03\x04", b"PK\x05\x06"), "zip", _refuse),
    (tuple(b"BZh%d1AY&SY" % level for level in range(1, 10)), "bzip2", _refuse),
    (b"\xfd7zXZ\0", "xz", _refuse),
    (b"\x28\xb5\x2f\xfd", "zstd", _refuse),
    (b"\x04\x22\x4d\x18", "lz4", _refuse),
    (b"ARROW1", "Arrow", _refuse),
    (b"7z\xbc\xaf'\x1c", "7z", _refuse),
    (b"Rar!\x1a\x07", "RAR", _refuse),
)
