"""Secrets in files, Parquet included.

A short list of its own, because the scanners on PyPI know no Hugging Face tokens, take any digest
for a password (releases are full of digests), and can't see into compressed columns.
"""

import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from releases.folder import LocalFile
from safe_stepwise.errors import UserError

HUGGING_FACE, OPENAI, AWS = "a Hugging Face token", "an OpenAI or Anthropic key", "an AWS key"
PATTERNS: tuple[tuple[str, bytes, bytes], ...] = (
    (HUGGING_FACE, b"hf_", rb"[A-Za-z0-9]{30,}"),
    (HUGGING_FACE, b"api_org_", rb"[A-Za-z0-9]{30,}"),
    (OPENAI, b"sk-", rb"(?:[A-Za-z0-9]{32,}|(?:proj|svcacct|admin|ant)-[\w-]{20,})"),
    (AWS, b"AKIA", rb"[0-9A-Z]{16}(?![0-9A-Za-z])"),
    (AWS, b"ASIA", rb"[0-9A-Z]{16}(?![0-9A-Za-z])"),
    *(("a GitHub token", b"gh%c_" % kind, rb"[A-Za-z0-9]{36}") for kind in b"pousr"),
    ("a GitHub token", b"github_pat_", rb"[A-Za-z0-9_]{40,}"),
    ("a GitLab token", b"glpat-", rb"[\w-]{20}"),
    ("a Google key", b"AIza", rb"[\w-]{35}"),
    ("a Slack token", b"xox", rb"[abprs]-[0-9A-Za-z-]{20,}"),
    ("a PyPI token", b"pypi-AgE", rb"[\w-]{50,}"),
    ("a private key", b"-----BEGIN ", rb"(?:[A-Z]+ ){0,2}PRIVATE KEY-----"),
)
"""What it is called, how it begins, and the pattern of the rest."""
_COMPILED = [(name, start, re.compile(re.escape(start) + rest)) for name, start, rest in PATTERNS]


def secret_in(file: LocalFile, own: str | None = None) -> str | None:
    """What the first secret in a file is, or None; ``own`` is the publisher's token.

    >>> secret_in(LocalFile("a.md", b"key: AKIA" + b"IOSFODNN7EXAMPLE", 25))
    'an AWS key'
    >>> secret_in(LocalFile("a.md", b"risk-sharing desk-top-publishing-software-of-1993", 50))
    """
    for block in _blocks(file):
        for name, start, pattern in _COMPILED:
            # Looking for the beginning alone is ten times as fast as the pattern.
            if block.find(start) >= 0 and pattern.search(block):
                return name
        if own and block.find(own.encode()) >= 0:
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
                    yield from (part.to_pybytes() for part in column.buffers() if part is not None)
    except pa.ArrowException as error:
        line = str(error).splitlines()[0]
        raise UserError(f"{path}: can't be read as Parquet: {line}") from None
