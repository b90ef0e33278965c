"""BM25 over a corpus: what is found, in what order, from which files, from which index."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from safe_stepwise.errors import UserError
from safe_stepwise.methods import corpus as module
from safe_stepwise.methods.corpus import Corpus
from safe_stepwise.records import Passage

ENTRIES = [
    {"title": "Oru", "text": "Oru is a town on the Vel."},
    {"title": "Vel", "sentences": ["The Vel is a river.", "It is long."]},
    {"title": "Ors Velt", "text": "Ors Velt was born in Oru."},
    {"title": "Same", "text": "Twin words."},
    {"title": "Same", "text": "Twin words."},
]


def lines(entries: object = ENTRIES) -> str:
    assert isinstance(entries, list)
    return "".join(json.dumps(entry) + "\n" for entry in entries)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    (tmp_path / "c.jsonl").write_text(lines(), encoding="utf-8")
    return Corpus.open(tmp_path / "c.jsonl", tmp_path / "cache")


def titles(corpus: Corpus, query: str, top: int = 3) -> list[str]:
    return [page.title for page in corpus.search(query, top)]


def test_the_best_come_first_and_what_does_not_fit_does_not_come(corpus: Corpus) -> None:
    assert titles(corpus, "Where was Ors Velt born?")[0] == "Ors Velt"
    assert titles(corpus, "the river Vel")[0] == "Vel"
    assert set(titles(corpus, "Oru")) == {"Oru", "Ors Velt"}
    assert titles(corpus, "Oru", top=1) == ["Oru"]
    assert corpus.search("river")[0] == Passage("Vel", ("The Vel is a river.", "It is long."))


@pytest.mark.parametrize("query", ["", "the of is", "Zanzibar", "?!", "\ud800"])
def test_a_query_that_fits_nothing_finds_nothing(corpus: Corpus, query: str) -> None:
    assert corpus.search(query) == ()


@pytest.mark.parametrize("top", [1, 2, 3, 50])
def test_of_equals_the_earlier_comes_first(corpus: Corpus, top: int) -> None:
    found = corpus.search("twin", top)
    assert len(found) == min(top, 2)
    assert found[0] is corpus.passages[3]


@pytest.mark.parametrize(
    "shape",
    [lines, lambda: "\n" + lines() + "\n\n", lambda: gzip.compress(lines().encode()), lambda: "\ufeff" + lines()],
)
def test_any_shape_of_file_is_read(tmp_path: Path, corpus: Corpus, shape: Callable[[], str | bytes]) -> None:
    content = shape()
    raw = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "other").write_bytes(raw)
    assert Corpus.open(tmp_path / "other", tmp_path / "cache").passages == corpus.passages


def test_an_array_is_read(tmp_path: Path, corpus: Corpus) -> None:
    (tmp_path / "c.json").write_text(json.dumps(ENTRIES, indent=1), encoding="utf-8")
    assert Corpus.open(tmp_path / "c.json", tmp_path / "cache").passages == corpus.passages
    for content, message in {'[{"title": "Oru", "text": 3}]': r"c\.json\[0\]: is no passage", "{}": "a list"}.items():
        (tmp_path / "c.json").write_text(content, encoding="utf-8")
        with pytest.raises(UserError, match=message):
            Corpus.open(tmp_path / "c.json", tmp_path / "cache")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lines()[:-20], r"c\.jsonl, line 5: is no passage \(Unterminated"),
        ('{"title": "Oru"}\n{"title": "Vel", "text": "x"}', r"c\.jsonl, line 1: is no passage"),
        ('{"title": "Oru", "text": 3}', r"sentences\[0\] is not a text"),
        ('{"title": null, "text": "x"}', "title is not a text"),
        ('["Oru"]', "is no passage"),
        ('{"title": "a", "text": "\\ud800"}', "is no passage"),
        ("", "holds no passages"),
        ('{"title": "the", "text": "of"}', "no passage holds a word"),
    ],
)
def test_a_file_that_is_no_corpus_is_one_line(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "c.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=message) as caught:
        Corpus.open(tmp_path / "c.jsonl", tmp_path / "cache")
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="cannot be read"):
        Corpus.open(tmp_path / "missing", tmp_path / "cache")


def test_the_index_is_kept_by_content_and_made_anew_where_it_is_damaged(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def keep_none(folder: Path) -> None:
        made.append(folder)
        raise OSError(folder)

    monkeypatch.setattr(module.files, "write_folder", keep_none)
    again = Corpus.open(tmp_path / "c.jsonl", tmp_path / "cache")
    assert not made
    assert again.search("Oru born") == corpus.search("Oru born")
    (folder,) = (tmp_path / "cache").iterdir()
    assert folder.name.startswith(corpus.sha256)
    assert not list(folder.glob("*.pkl"))
    for file in folder.iterdir():
        file.write_bytes(file.read_bytes()[:10])
    damaged = Corpus.open(tmp_path / "c.jsonl", tmp_path / "cache")
    assert len(made) == 1
    assert damaged.search("Oru born") == corpus.search("Oru born")
    (tmp_path / "d.jsonl").write_text(lines(ENTRIES[:3]), encoding="utf-8")
    other = Corpus.open(tmp_path / "d.jsonl", tmp_path / "cache")
    assert len(made) == 2
    assert other.search("twin") == ()


def test_a_cache_that_cannot_be_written_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text(lines(), encoding="utf-8")
    (tmp_path / "file").write_text("", encoding="utf-8")
    found = Corpus.open(tmp_path / "c.jsonl", tmp_path / "file" / "cache")
    assert titles(found, "river") == ["Vel"]


def test_each_real_passage_is_found_by_its_own_beginning(tmp_path: Path, real_data: Path) -> None:
    found = Corpus.open(real_data / "2wikimultihopqa_corpus.json", tmp_path)
    assert len(found.passages) == 6119
    sample = found.passages[::97]
    hits = sum(page in found.search(f"{page.title} {page.text[:80]}") for page in sample)
    assert hits >= 0.97 * len(sample)
