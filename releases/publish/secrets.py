"""Secrets in files, however these are packed.

With the patterns of our own `safe_stepwise.store.terminal`: detect-secrets and its like on PyPI take
any digest for a password (releases are full of digests), know no Hugging Face tokens and can't see
into compressed columns; gitleaks and trufflehog are programs, and don't look into Parquet either.
"""

import io
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import IO

from releases.publish.folder import LocalFile
from releases.publish.views import readings, views
from safe_stepwise.store.terminal import PATTERNS, spellings

_COMPILED = [(name, start.encode(), re.compile((re.escape(start) + rest).encode())) for name, start, rest in PATTERNS]


def secret_in(file: LocalFile, own: Mapping[str, str] | None = None) -> str | None:
    """What the first secret in a file, or in its path, is; None if there is none.

    ``own`` are credentials by their names (`safe_stepwise.store.terminal.credentials`). Raises
    UserError for a file that can't be looked into.

    >>> secret_in(LocalFile("a.md", b"key: AKIA" + b"IOSFODNN7EXAMPLE", 25))
    'an AWS key'
    >>> secret_in(LocalFile("a.md", b"risk-sharing desk-top-publishing-software-of-1993", 50))
    """
    known = [(f"the value of {n}", form) for n, v in (own or {}).items() for form in _spelled(v)]
    with _opened(file) as content:
        for view in chain(readings(file.path.encode()), views(content, str(_place(file)))):
            for name, start, pattern in _COMPILED:
                # Looking for the beginning alone is ten times as fast as the pattern.
                if start in view and pattern.search(view):
                    return name
            for name, form in known:
                if form in view:
                    return name
    return None


def _spelled(value: str) -> Iterator[bytes]:
    """A credential as files may have it; what is ASCII comes out of every encoding as it is."""
    for form in sorted(spellings(value)):
        yield form.encode("utf-8", "surrogateescape")
    if not value.isascii():
        yield value.encode("utf-16-le", "surrogatepass")
        yield value.encode("utf-16-be", "surrogatepass")


def _opened(file: LocalFile) -> IO[bytes]:
    if isinstance(file.content, bytes):
        return io.BytesIO(file.content)
    return file.content.open("rb")


def _place(file: LocalFile) -> object:
    return file.path if isinstance(file.content, bytes) else file.content
