"""Files of judgements: what is read, and what is refused with one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.audit.score import (
    FORM_QUESTIONS,
    SOUND,
    STRATUM_FIELDS,
    Judgement,
    parse_judgement,
    questions_for,
    read,
)
from safe_stepwise.errors import UserError
from tests.evaluators.audit.made import SOUND as SOUND_ROW
from tests.evaluators.audit.made import exported, said

TEXT = st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def lines(draw: st.DrawFn) -> dict[str, Any]:
    of = draw(st.sampled_from(sorted(FORM_QUESTIONS)))
    label = draw(st.just(SOUND[of]) | TEXT)
    stratum = [draw(TEXT), label, *(draw(TEXT) for _ in STRATUM_FIELDS[of][2:])]
    answers = {
        asked.name: draw(st.none() | st.sampled_from(sorted(asked.answers)))
        for asked in questions_for(of, stratum)  # type: ignore[arg-type]
    }
    reviewer = draw(TEXT.filter(str.strip))
    plain = {name: draw(TEXT) for name in ("sample", "id", "sha256", "note")}
    return said("", reviewer, of, stratum=stratum, benchmark=stratum[0], **plain, **answers)


@given(lines())
def test_every_line_of_the_page_is_read_as_it_was_written(line: dict[str, Any]) -> None:
    found = parse_judgement(json.dumps(line))
    given = {asked.name: line[asked.name] for asked in FORM_QUESTIONS[found.of] if line[asked.name]}
    assert found.answers == given
    assert [*found.stratum] == line["stratum"]
    for name in ("of", "sample", "benchmark", "id", "sha256", "reviewer", "note"):
        assert getattr(found, name) == line[name]


@given(lines(), st.data())
def test_a_damaged_line_is_read_or_refused(line: dict[str, Any], data: st.DataObject) -> None:
    damaged = dict(line)
    for name in data.draw(st.lists(st.sampled_from(sorted(line)) | TEXT, max_size=3)):
        damaged[name] = data.draw(JSON)
    try:
        found = parse_judgement(json.dumps(damaged))
    except ValueError:
        return
    assert isinstance(found, Judgement)
    for asked in FORM_QUESTIONS[found.of]:
        assert damaged[asked.name] in (None, *asked.answers)


@given(st.binary(max_size=60) | TEXT)
def test_what_is_no_line_raises_a_value_error_alone(line: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_judgement(line)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"label": "yes"}, r"label is not one of right, wrong, debatable, or null"),
        ({"label": 1}, r"it\.answers\.label is not a text"),
        ({"lacks_evidence": True}, r"it\.answers\.lacks_evidence is not a text"),
        ({"verdict": "right"}, r"verdict is no key of it"),
        ({"reviewer": "  "}, r"reviewer is empty"),
        ({"of": "answers"}, r"of is not one of labels, steps"),
        ({"stratum": ["musique"]}, r"stratum is not benchmark, noise_type"),
        ({"stratum": ["hotpotqa", "none"]}, r"stratum is not benchmark, noise_type"),
        ({"note": None}, r"it.note is not a text"),
        ({"stratum": [*SOUND_ROW], "type": "right"}, r"type is not asked of this row"),
    ],
)
def test_a_value_that_is_none_names_file_and_line(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    file = exported(tmp_path / "ann.jsonl", [said("q1"), said("q2", **changes)])
    match = rf"ann\.jsonl, line 2: is no judgement \({reason}.*\); export it from the page again"
    with pytest.raises(UserError, match=match):
        read([file])


def test_a_key_that_is_gone_is_named(tmp_path: Path) -> None:
    line = said("q1")
    del line["note"]
    with pytest.raises(UserError, match=r"line 1: is no judgement \(it has no note\)"):
        read([exported(tmp_path / "a.jsonl", [line])])


def test_files_that_are_none_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no\.jsonl: cannot be read \(No such file"):
        read([tmp_path / "no.jsonl"])
    with pytest.raises(UserError, match=r"a\.jsonl: holds no judgement"):
        read([exported(tmp_path / "a.jsonl", [])])
    with pytest.raises(UserError, match=r"a\.jsonl, line 1: no question is answered"):
        read([exported(tmp_path / "a.jsonl", [said("q1", note="later")])])
    (tmp_path / "b.jsonl").write_text('{"of": "labels"')
    with pytest.raises(UserError, match=r"b\.jsonl, line 1: is no judgement"):
        read([tmp_path / "b.jsonl"])


def test_a_row_twice_is_named_with_both_places(tmp_path: Path) -> None:
    one = exported(tmp_path / "a.jsonl", [said("q1", label="wrong"), said("q2")])
    other = exported(tmp_path / "b.jsonl", [said("q3"), said("q2", label="right")])
    match = r"b\.jsonl, line 2: 'ann' judged the row 'q2' before, in .*a\.jsonl, line 2; remove one"
    with pytest.raises(UserError, match=match):
        read([one, other])
    other = exported(tmp_path / "b.jsonl", [said("q3"), said("q2", "bob")])
    assert [(j.id, j.reviewer) for j in read([one, other])] == [
        ("q1", "ann"), ("q2", "ann"), ("q3", "ann"), ("q2", "bob"),
    ]  # fmt: skip


@pytest.mark.parametrize("other", [said("q9", "bob", sample="9" * 64), said("q9", "bob", "steps")])
def test_files_of_different_samples_are_named(tmp_path: Path, other: dict[str, Any]) -> None:
    files = [exported(tmp_path / "a.jsonl", [said("q1")]), exported(tmp_path / "b.jsonl", [other])]
    match = r"b\.jsonl, line 1: judges another sample than .*a\.jsonl, line 1; score the files of"
    with pytest.raises(UserError, match=match):
        read(files)


def test_a_row_that_was_shown_otherwise_is_named(tmp_path: Path) -> None:
    file = exported(tmp_path / "a.jsonl", [said("q1"), said("q1", "bob", sha256="0" * 64)])
    with pytest.raises(UserError, match=r"line 2: its row 'q1' has other content in an earlier"):
        read([file])
