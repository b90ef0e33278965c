"""Secrets in files, Parquet included.

A short list of its own, because the scanners on PyPI know no Hugging Face tokens, take any digest
for a password (releases are full of digests), and can't see into compressed columns.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from releases.folder import LocalFile
from safe_stepwise.errors import UserError

PATTERNS: dict[str, bytes] = {
    "a Hugging Face token": rb"hf_[A-Za-z0-9]{30,}|api_org_[A-Za-z0-9]{30,}",
    "an OpenAI or Anthropic key": rb"sk-(?:[A-Za-z0-9]{32,}|(?:proj|svcacct|admin|ant)-[\w-]{20,})",
    "an AWS key": rb"(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])",
    "a GitHub token": rb"gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{40,}",
    "a GitLab token": rb"glpat-[\w-]{20}",
    "a Google key": rb"AIza[\w-]{35}",
    "a Slack token": rb"xox[abprs]-[0-9A-Za-z-]{20,}",
    "a PyPI token": rb"pypi-AgE[\w-]{50,}",
    "a private key": rb"-----BEGIN (?:[A-Z]+ ){0,2}PRIVATE KEY-----",
}
_ANY = re.compile(b"|".join(b"(%s)" % pattern for pattern in PATTERNS.values()))


def secret_in(file: LocalFile, own: str | None = None) -> str | None:
    """What the first secret in a file is, or None; ``own`` is the publisher's token.

    >>> secret_in(LocalFile("a.md", b"key: AKIA" + b"IOSFODNN7EXAMPLE", 25))
    'an AWS key'
    >>> secret_in(LocalFile("a.md", b"risk-sharing desk-top-publishing-software-of-1993", 50))
    """
    needle = own.encode() if own else None
    for block in _blocks(file):
        found = _ANY.search(block)
        if found:
            return list(PATTERNS)[(found.lastindex or 1) - 1]
        if needle and re.search(re.escape(needle), block):
            return "your own token"
    return None


def _blocks(file: LocalFile) -> Iterator[Any]:
    """The content, as bytes that can be searched; of Parquet also the columns, decoded."""
    if not file.size:
        return
    if isinstance(file.content, bytes):
        yield file.content
        return
    with (
        file.content.open("rb") as opened,
        mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        yield content
    if file.path.endswith(".parquet"):
        yield from _columns(file.content)


def _columns(path: Path) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as parquet:
            for batch in parquet.iter_batches(batch_size=2000):
                for column in batch.columns:
                    # An array's texts lie end to end in one buffer, whatever they are nested in.
                    yield from (buffer for buffer in column.buffers() if buffer is not None)
    except pa.ArrowException as error:
        line = str(error).splitlines()[0]
        raise UserError(f"{path}: can't be read as Parquet: {line}") from None
