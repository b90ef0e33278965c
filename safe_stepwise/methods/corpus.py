"""Search a corpus of passages by BM25, for the incomplete-evidence setting (SAFE v2, finding 5).

A corpus is a file of passages, each a title with a text or with sentences: JSON lines, gzipped or not, or a JSON array
(``.json``). The order of results is that of `ranking.rank_by_bm25`.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safe_stepwise.errors import UserError, at_place
from safe_stepwise.methods import ranking
from safe_stepwise.records import Passage
from safe_stepwise.store import boundary, codec, files

_FORM = 'write {"title": "...", "text": "..."} or {"title": "...", "sentences": ["..."]}'
MOST_RETRIEVED = 8
"""The maximum number of passages that a search returns by default; a method takes the first three or four."""
_INDEX_VERSION = "1"  # increase it when indexing changes


@dataclass(frozen=True, slots=True)
class Corpus:
    """Passages and their index; ``name`` and ``sha256`` are those of the file."""

    name: str
    sha256: str
    passages: tuple[Passage, ...]
    _index: Any

    @classmethod
    def open(cls, path: Path, cache: Path) -> "Corpus":
        """Open a file's corpus and its index, which is kept in ``cache``; raise ``UserError`` for a bad file."""
        with at_place("--corpus"):
            passages = tuple(_read_passages(path))
            sha256 = files.sha256_of(path)
        if not passages:
            raise UserError(f"--corpus {path}: holds no passages")
        return cls(path.name, sha256, passages, _open_index(passages, cache / f"{sha256}-{_INDEX_VERSION}"))

    def search(self, query: str, top: int = MOST_RETRIEVED) -> tuple[Passage, ...]:
        """Return the ``top`` passages with the highest scores, best first; fewer if fewer have a term of the query."""
        return tuple(self.passages[n] for n in ranking.rank_by_bm25(self._index, query, top))


def _open_index(passages: Sequence[Passage], folder: Path) -> Any:
    """Load the index from a folder; if it is missing or damaged, build and store it."""
    import bm25s

    with suppress(Exception):
        stored = bm25s.BM25.load(folder, show_progress=False, load_corpus=False)
        if stored.scores["num_docs"] == len(passages):
            return stored
    if (index := ranking.index_passages(passages)) is None:
        raise UserError("--corpus: no passage holds a word to search for")
    with suppress(OSError), files.write_folder(folder) as target:  # an index that can't be stored does not stop a run
        index.save(target, show_progress=False)
        files.remove_folder(folder)
    return index


def _read_passages(path: Path) -> Iterator[Passage]:
    if path.suffix == ".json":
        for number, entry in enumerate(boundary.read_file(list[dict[str, Any]], path, "it", _FORM)):
            with files.explain_line(f"{path}[{number}]: is no passage", _FORM):
                page = _parse_passage(entry)
            yield page
    else:
        read_line = lambda line: _parse_passage(boundary.parse_json(line))  # noqa: E731
        yield from (page for _, page in files.read_lines(path, read_line, "passage", _FORM, blanks=True))


def _parse_passage(entry: Any) -> Passage:
    page = codec.passage_of(entry)
    f"{page.title}{page.text}".encode()  # half of a surrogate pair is a ValueError
    return Passage(page.title, page.sentences)
