"""Similarities of steps and triples: bounds, words, letters, and the extra that may be missing."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.checking.faithfulness import retrieval
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS, embeddings, verbalise, words
from safe_stepwise.errors import UserError
from safe_stepwise.language.text import normal_words
from safe_stepwise.records import Triple

texts = st.lists(st.text(max_size=20) | st.text("ab ", max_size=12), min_size=1, max_size=4)


@given(said=texts, candidates=texts)
def test_a_row_for_each_text_with_a_share_for_each_candidate(said: list[str], candidates: list[str]) -> None:
    rows = words(said, candidates)
    assert [len(row) for row in rows] == [len(candidates)] * len(said)
    assert all(0 <= share <= 1 + 1e-9 for row in rows for share in row)
    turned = words(candidates, said)
    assert all(row[n] == turned[n][m] for m, row in enumerate(rows) for n in range(len(candidates)))


@given(texts, texts)
def test_words_are_the_cosine_of_sets(said: list[str], candidates: list[str]) -> None:
    for text, row in zip(said, words(said, candidates), strict=True):
        for candidate, share in zip(candidates, row, strict=True):
            one, other = (Counter(set(normal_words(t).split())) for t in (text, candidate))
            dot = sum(one[word] * other[word] for word in one)
            norm = math.sqrt(len(one)) * math.sqrt(len(other))
            assert share == pytest.approx(dot / norm if norm else 0)


def test_a_relation_is_told_in_words() -> None:
    assert verbalise(Triple("$", "directed_by", "Ana")) == "$ directed by Ana."


def test_by_name() -> None:
    assert [*RETRIEVALS] == ["words", "embeddings"]


def test_a_missing_extra_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval, "find_spec", lambda module: None)
    with pytest.raises(UserError, match=r"onnxruntime: pip install -e '\.\[embeddings\]'"):
        embeddings(["a"], ["b"])


def test_a_missing_file_of_the_extra_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    spec = type("Spec", (), {"submodule_search_locations": [str(tmp_path_factory.mktemp("site"))]})
    monkeypatch.setattr(retrieval, "find_spec", lambda module: spec)
    with pytest.raises(UserError, match=r"model\.onnx not found"):
        retrieval._read_file(retrieval._MODEL)


def test_judging_imports_no_extra() -> None:
    code = (
        "import sys, safe_stepwise.checking.faithfulness.judging\n"
        "print({'onnxruntime', 'tokenizers', 'torch'} & set(sys.modules))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told == "set()\n"


def test_sentences_alike_are_near() -> None:
    try:
        retrieval.check_installed()
    except UserError as missing:
        pytest.skip(str(missing))
    said = ["Ors Velt directed Dune Rain.", "", "\ud800", "Oru " * 5000]
    candidates = ["Dune Rain director Ors Velt.", "Oru country Kelvia."]
    rows = embeddings(said, candidates)
    assert rows[0][0] > 0.8 > 0.5 > rows[0][1]
    assert all(0 <= share <= 1 for row in rows for share in row)
    assert embeddings(said[:1], candidates[::-1])[0] == rows[0][::-1]
