"""Scores of judgements that are said here, against figures worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluators.audit.report import read_scores, render_scores, write_scores
from evaluators.audit.score import Scores, Share, read, score
from safe_stepwise.errors import UserError
from scripts import audit_labels
from tests.evaluators.audit.made import SOUND, exported, said


def scored(folder: Path, *lines: dict[str, Any]) -> Scores:
    return score(read([exported(folder / "said.jsonl", lines)]))


def test_rates_have_wilsons_interval(tmp_path: Path) -> None:
    """8 of 10: .490 to .943 (Newcombe 1998 has .4902, .9433); 10 of 10 reach down to .722."""
    lines = [said(f"q{n}", label="right" if n < 8 else "wrong") for n in range(10)]
    found = scored(tmp_path, *lines, said("q10"))
    assert found.rates["label"]["right"] == Share(10, 8, 0.8, 0.4902, 0.9433)
    assert found.rates["label"]["debatable"].hits == 0
    assert set(found.rates) == {"label"}
    assert found.false_alarms == Share(10, 2, 0.2, 0.0567, 0.5098)
    assert found.missed is None
    assert found.lacks_evidence is None
    assert (found.rows, found.judgements) == (10, 10)
    certain = scored(tmp_path, *(said(f"q{n}", label="right") for n in range(10)))
    assert certain.rates["label"]["right"] == Share(10, 10, 1.0, 0.7225, 1.0)


def test_kappa_of_each_two_over_the_rows_that_both_judged(tmp_path: Path) -> None:
    """Cohen's: equal .7; by chance .5 x .6 + .5 x .4 = .5; kappa .4."""
    table = [("right", "right", 4), ("right", "wrong", 1), ("wrong", "right", 2), ("wrong", "wrong", 3)]
    pairs = [(a, b) for a, b, times in table for _ in range(times)]
    lines = [
        said(f"q{n}", reviewer, label=pair[reviewer == "bob"])
        for n, pair in enumerate(pairs)
        for reviewer in ("ann", "bob")
    ]
    found = scored(tmp_path, *lines, said("alone", label="wrong"), said("none", "cy"))
    (pair,) = found.agreement
    assert (pair.one, pair.other, pair.question) == ("ann", "bob", "label")
    assert (pair.rows, pair.share, pair.kappa) == (10, 0.7, 0.4)
    assert found.reviewers == ("ann", "bob")


def test_a_row_counts_once_with_what_most_say(tmp_path: Path) -> None:
    lines = [
        *(said("q1", who, label="right") for who in ("ann", "bob")),
        said("q1", "cy", label="wrong"),
        said("q2", "ann", label="right"), said("q2", "bob", label="wrong", note="no"),
        said("q3", "ann", label="right", type="wrong", explanation="false", lacks_evidence="yes"),
    ]  # fmt: skip
    found = scored(tmp_path, *lines)
    assert found.rates["label"]["right"].hits == 2
    assert found.rates["label"]["disputed"] == Share.from_counts(3, 1)
    assert "disputed" not in found.rates["type"]
    assert found.lacks_evidence == Share.from_counts(1, 1)
    assert [(d.id, d.wrong, d.disagree, d.notes) for d in found.doubts] == [
        ("q1", ("cy",), ("label",), ()),
        ("q2", ("bob",), ("label",), ("no",)),
    ]
    assert "reviewers differ on label" in render_scores(found)


def test_noise_and_sound_rows_are_told_apart(tmp_path: Path) -> None:
    sound: dict[str, Any] = {"stratum": [*SOUND]}
    found = scored(
        tmp_path,
        said("q1", label="wrong", lacks_evidence="no"),
        said("q2", label="right", lacks_evidence="yes"),
        said("q3", label="right", lacks_evidence="no"),
        said("q4", label="debatable", lacks_evidence="yes"),
        said("q5", label="wrong", lacks_evidence="yes", **sound),
        said("q6", label="right", lacks_evidence="no", **sound),
    )
    assert found.false_alarms == Share.from_counts(4, 1)
    assert found.missed == found.lacks_evidence == Share.from_counts(2, 1)
    assert [(g.names, g.rows) for g in found.parts["noise_type"]] == [(("none",), 2), (("wrong_answer",), 4)]
    assert [g.names for g in found.parts["benchmark"]] == [("musique",)]
    text = render_scores(found)
    assert "labelled noise: the label is wrong" in text
    assert "rightly labelled noise: the passages lack evidence      1   2  0.500" in text


def test_steps_say_which_label_instead(tmp_path: Path) -> None:
    wrong: dict[str, Any] = {"of": "steps", "label": "wrong", "instead": "Unsupported"}
    found = scored(tmp_path, said("s1", **wrong), said("s1", "bob", "steps", guidance="reveals"))
    assert found.doubts[0].instead == ("Unsupported",)
    assert found.rates["guidance"]["reveals"].share == 1.0
    assert "instead" not in found.rates
    assert found.lacks_evidence is None
    assert [*found.parts] == ["benchmark", "error_type", "origin"]
    assert found.agreement == ()


def test_scores_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    found = scored(tmp_path, said("q1", label="right"), said("q1", "bob", label="wrong"))
    file = tmp_path / "some" / "scores.json"
    write_scores(found, file)
    content = read_scores(file, "labels")
    assert content == json.loads(file.read_bytes())
    assert content["judged"] == [["musique", "q1", "cd" * 32]]
    with pytest.raises(UserError, match=r"scores\.json: has scores of labels, not of steps"):
        read_scores(file, "steps")
    with pytest.raises(UserError, match=r"no\.json: cannot be read \(No such.*audit_labels score"):
        read_scores(tmp_path / "no.json", "labels")
    file.write_text(json.dumps({**content, "rows": "many"}))
    with pytest.raises(UserError, match=r"rows is not a whole number"):
        read_scores(file, "labels")
    with pytest.raises(UserError, match=r"cannot be written .*choose another place"):
        write_scores(found, tmp_path)


def test_the_scores_never_replace_the_judgements(tmp_path: Path) -> None:
    (file := tmp_path / "judgements.json").write_text("{}")
    with pytest.raises(UserError, match="is what the command reads"):
        audit_labels.main(["score", str(file), "--output", str(file)])
    assert file.read_text() == "{}"
