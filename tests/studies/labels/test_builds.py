"""Two builds' labels, row by row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, precision_recall_fscore_support

from safe_stepwise.errors import UserError
from safe_stepwise.records import NOISE_TYPES
from studies.labels.builds import LabelledBuild, RowLabel, compare, render, write

PLACES = [("hotpotqa", "train"), ("musique", "train"), ("musique", "validation")]
TYPES = st.sampled_from(NOISE_TYPES)
ROWS = st.dictionaries(st.tuples(st.sampled_from(PLACES), st.integers(0, 9)), TYPES)


def built(rows: Mapping[tuple[tuple[str, str], int], str], teacher: str = "t") -> LabelledBuild:
    """Labels of rows that are called by place and number; the question has the number too."""
    found: dict[tuple[str, str], dict[str, RowLabel]] = {}
    for (place, number), type_ in rows.items():
        found.setdefault(place, {})[str(number)] = RowLabel(f"q{number}", type_, teacher)
    return LabelledBuild(Path(teacher), found)


def noisy(type_: str) -> bool:
    return type_ not in ("none", "unparsed", "undecided")


@given(ROWS, ROWS)
def test_figures_are_those_of_scikit_learn(
    one: dict[tuple[tuple[str, str], int], str], other: dict[tuple[tuple[str, str], int], str]
) -> None:
    shared = [key for key in one if key in other]
    if not shared:
        with pytest.raises(UserError, match="no benchmark, split and id is in both"):
            compare(built(one), built(other))
        return
    *parts, every = compare(built(one), built(other))
    assert [(p["benchmark"], p["split"]) for p in parts] == sorted({place for place, _ in (*one, *other)})
    assert every["both"] == sum(part["both"] for part in parts) == len(shared)
    assert every["only_one"] == sum(part["only_one"] for part in parts) == len(one) - len(shared)
    assert every["only_other"] == sum(part["only_other"] for part in parts) == len(other) - len(shared)
    assert every["types"] == {
        a: {b: n for b in NOISE_TYPES if (n := _count(one, other, shared, a, b))}
        for a in NOISE_TYPES if any(one[key] == a for key in shared)
    }  # fmt: skip
    judged = [key for key in shared if "unparsed" not in (one[key], other[key])]
    true = [noisy(other[key]) for key in judged]
    found = [noisy(one[key]) for key in judged]
    assert (every["judged"], every["noise_one"], every["noise_other"]) == (len(judged), sum(found), sum(true))
    if not judged:
        assert (every["agreement"], every["kappa"], every["precision"], every["recall"]) == (None,) * 4
        return
    equal = sum(a == b for a, b in zip(true, found, strict=True))
    assert every["agreement"] == pytest.approx(equal / len(judged), abs=1e-4)
    if len({*true, *found}) > 1:
        assert every["kappa"] == pytest.approx(cohen_kappa_score(true, found), abs=1e-4)
    else:
        assert every["kappa"] is None
    scores = precision_recall_fscore_support(true, found, average="binary", zero_division=0)
    assert (every["precision"] or 0.0) == pytest.approx(scores[0], abs=1e-4)
    assert (every["recall"] or 0.0) == pytest.approx(scores[1], abs=1e-4)
    assert (every["f1"] or 0.0) == pytest.approx(scores[2], abs=1e-4)


def _count(one: Mapping[object, str], other: Mapping[object, str], keys: list[object], a: str, b: str) -> int:
    return sum((one[key], other[key]) == (a, b) for key in keys)


@given(ROWS.filter(bool))
def test_a_build_agrees_with_itself(rows: dict[tuple[tuple[str, str], int], str]) -> None:
    for part in compare(built(rows), built(rows)):
        assert (part["only_one"], part["only_other"], part["other_question"]) == (0, 0, 0)
        assert part["agreement"] in (None, 1.0)
        assert part["kappa"] in (None, 1.0)
        assert all(row.keys() == {type_} for type_, row in part["types"].items())


def test_another_question_under_one_id_is_no_row_of_both() -> None:
    place = ("musique", "train")
    one = LabelledBuild(Path("a"), {place: {"1": RowLabel("q1", "none", "t"), "2": RowLabel("q2", "none", "t")}})
    other = LabelledBuild(Path("b"), {place: {"1": RowLabel("q1", "none", "t"), "2": RowLabel("x", "none", "t")}})
    part, _ = compare(one, other)
    assert (part["both"], part["other_question"], part["only_one"], part["only_other"]) == (1, 1, 0, 0)


ONE = built({(PLACES[0], 1): "none", (PLACES[0], 2): "wrong_answer", (PLACES[0], 3): "unparsed",
             (PLACES[1], 1): "none"}, "a|b")  # fmt: skip
OTHER = built({(PLACES[0], 1): "none", (PLACES[0], 2): "unspecified", (PLACES[0], 3): "none",
               (PLACES[0], 4): "none"}, "published:x.txt")  # fmt: skip


def test_the_report_is_markdown() -> None:
    text = render(ONE, OTHER, compare(ONE, OTHER))
    lines = text.splitlines()
    assert "- first: a\\|b (a\\|b)" in lines
    assert "- second: published:x.txt (published:x.txt)" in lines
    assert "| hotpotqa | train | 3 | 0 | 1 | 0 |" in lines
    assert "| musique | train | 0 | 1 | 0 | 0 |" in lines
    assert "| all |  | 3 | 1 | 1 | 0 |" in lines
    scores = "| hotpotqa | train | 2 | 1 | 1 | 1 | 1.000 | 1.000 | 1.000 | 1.000 | 1.000 |"
    assert scores in lines
    assert "| musique | train | 0 | 0 | 0 | 0 | – | – | – | – | – |" in lines
    at = lines.index("## Noise types: hotpotqa train")
    assert lines[at + 2 : at + 7] == [
        "| first, by the second's | none | unspecified |",
        "| --- | ---: | ---: |",
        "| none | 1 | 0 |",
        "| wrong_answer | 0 | 1 |",
        "| unparsed | 1 | 0 |",
    ]
    assert "## Noise types: musique train" not in lines
    assert "## Noise types: all" in lines


def test_the_file_has_every_figure(tmp_path: Path) -> None:
    parts = compare(ONE, OTHER)
    write(ONE, OTHER, parts, tmp_path / "deep" / "compared.json")
    content = json.loads((tmp_path / "deep" / "compared.json").read_bytes())
    assert content["first"] == {"folder": "a|b", "teachers": ["a|b"]}
    assert [content["all"]] + content["parts"] == [parts[-1], *parts[:-1]]
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UserError, match="cannot be written"):
        write(ONE, OTHER, parts, tmp_path / "file" / "compared.json")
