"""Searches a corpus of passages by BM25, for the incomplete-evidence setting (SAFE v2, finding 5).

A corpus is a file of passages, each a title with a text or with sentences: JSON lines, a JSON array, or a JSON object
from titles to texts, gzipped or not. Scores are those of `bm25s` with its own defaults (Lucene's BM25, k1 = 1.5, b =
0.75; English stop words are left out). Among passages with the same score, the earlier comes first.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safe_stepwise.errors import UserError
from safe_stepwise.records import Passage
from safe_stepwise.store import boundary, opening
from safe_stepwise.store.files import explain_line, remove_folder, write_folder

_FORM = 'write {"title": "...", "text": "..."} or {"title": "...", "sentences": ["..."]}'
MOST_RETRIEVED = 8
"""The most passages that a search returns by default; a method takes the first three or four."""
_INDEX = "1"  # version of the index; increase it when indexing changes


@dataclass(frozen=True, slots=True)
class Corpus:
    """Passages and their index; ``sha256`` is that of the file (64 hex digits)."""

    name: str
    sha256: str
    passages: tuple[Passage, ...]
    _index: Any

    @classmethod
    def open(cls, path: Path, cache: Path) -> Corpus:
        """Open a file's corpus, with its index from ``cache``, or made there; raise ``UserError`` for a bad file."""
        try:
            with opening.open_file(path) as file:
                raw = file.read()
            sha256 = hashlib.sha256(raw).hexdigest()
            text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        except (OSError, EOFError, zlib.error) as error:
            raise UserError(f"--corpus {path}: cannot be read ({error})") from None
        passages = tuple(_passages(path, text.decode("utf-8-sig", "surrogateescape")))
        if not passages:
            raise UserError(f"--corpus {path}: holds no passages")
        return cls(path.name, sha256, passages, _index(passages, cache / f"{sha256}-{_INDEX}"))

    def search(self, query: str, top: int = MOST_RETRIEVED) -> tuple[Passage, ...]:
        """Return the ``top`` passages with the highest scores, best first; fewer if fewer have a term of the query."""
        import numpy as np

        terms = [t for t in _terms([query])[0] if t and t in self._index.vocab_dict]
        if not terms:
            return ()
        scores = self._index.get_scores(terms)
        least = np.partition(scores, -top)[-top] if top < len(scores) else 0
        among = np.flatnonzero((scores >= least) & (scores > 0))
        order = among[np.argsort(-scores[among], kind="stable")]
        return tuple(self.passages[n] for n in order[:top])


def _index(passages: Sequence[Passage], folder: Path) -> Any:
    import bm25s

    with suppress(Exception):  # missing or damaged: built anew
        stored = bm25s.BM25.load(folder, show_progress=False, load_corpus=False)
        if stored.scores["num_docs"] == len(passages):
            return stored
    index = bm25s.BM25()
    terms = _terms([f"{page.title} {page.text}" for page in passages])
    if not any(terms):
        raise UserError("--corpus: no passage holds a word to search for")
    index.index(terms, show_progress=False)
    with suppress(OSError), write_folder(folder) as target:  # an index that can't be stored does not stop a run
        index.save(target, show_progress=False)
        remove_folder(folder)
    return index


def _terms(texts: Sequence[str]) -> list[list[str]]:
    import bm25s

    tokens: list[list[str]] = bm25s.tokenize(list(texts), return_ids=False, show_progress=False, allow_empty=False)
    return tokens


def _passages(path: Path, text: str) -> Iterator[Passage]:
    """Yield the passages of a corpus; an object of titles is split. Raises ``UserError`` with an entry's place."""
    try:
        content, is_lines = boundary.parse_json(text), False
    except ValueError:
        content, is_lines = text.split("\n"), True
    if isinstance(content, dict) and "title" not in content:
        content = [
            {"title": title, **(entry if isinstance(entry, dict) else {"text": entry})}
            for title, entry in content.items()
        ]
    for number, entry in enumerate(content if isinstance(content, list) else [content]):
        if is_lines and not entry.strip():
            continue
        place = f"{path}:{number + 1}" if is_lines else f"{path}[{number}]"
        with explain_line(f"--corpus {place}: is no passage", _FORM):
            passage = _passage(boundary.parse_json(entry) if is_lines else entry)
        yield passage


def _passage(entry: Any) -> Passage:
    if not isinstance(entry, dict):
        raise ValueError("not a JSON object")
    content = entry["sentences"] if "sentences" in entry else entry["text"]
    sentences = [content] if isinstance(content, str) else content
    if not isinstance(sentences, list) or not all(isinstance(s, str) for s in sentences):
        raise ValueError("its text is no string, and no list of sentences")
    if not isinstance(entry["title"], str):
        raise ValueError("its title is no string")
    for text in (entry["title"], *sentences):
        text.encode("utf-8")
    return Passage(entry["title"], tuple(sentences))
