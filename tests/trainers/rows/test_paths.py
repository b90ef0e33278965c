"""Rows of relation paths: which are opened, and which can't be learnt."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from safe_stepwise.errors import UserError
from safe_stepwise.methods.path_proposing import completion_of, joint_completion
from safe_stepwise.records import Candidate
from tests.trainers import paths_sets
from tests.trainers.paths_sets import NAME, write_set
from trainers.config import PathFilters, PathRecipe
from trainers.data import read_train_rows
from trainers.rows.base import BadRow, RowKind, fingerprint, kind_of
from trainers.rows.paths import PathRows

SFT, KTO = PathRows("sft", "question"), PathRows("kto", "question")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_set(tmp_path_factory.mktemp("paths"))


def test_a_set_is_found_in_what_its_build_wrote(folder: Path) -> None:
    for where in (folder, folder.parent):
        source, rows = SFT.open(str(where), "train", PathFilters())
        assert (source.name, len(rows)) == (NAME, 8)
    (folder.parent / "dp-other-paths" / "data").mkdir(parents=True)
    with pytest.raises(UserError, match=r"several sets \(dp-other-paths, dp-songs-paths\)"):
        SFT.open(str(folder.parent), "train", PathFilters())


def test_kto_has_labels_that_are_part_of_what_is_learnt(folder: Path) -> None:
    _, rows = KTO.open(str(folder), "train", PathFilters())
    assert {row["label"] for row in rows} == {True, False}
    turned = [{**row, "label": not row["label"]} for row in rows]
    assert fingerprint(turned) != fingerprint(rows)
    assert (SFT.labelled, KTO.labelled) == (False, True)


def test_an_ablation_leaves_the_good_and_a_kind_of_bad(folder: Path) -> None:
    _, rows = KTO.open(str(folder), "train", PathFilters(negatives=("truncation",)))
    assert {row["kind"] for row in rows} == {"positive", "truncation"}
    with pytest.raises(UserError, match="no flipped in it, only truncation, wrong_relation"):
        KTO.open(str(folder), "train", PathFilters(negatives=("flipped",)))


@pytest.mark.parametrize("kind", [SFT, KTO])
def test_some_rows_are_a_draw(folder: Path, kind: RowKind) -> None:
    """Not the first of the set: a source may have a file a number of hops."""
    _, every = kind.open(str(folder), "train", PathFilters())
    asked = [int(row["question_id"][1:]) for row in every]
    assert asked != sorted(asked)
    assert set(asked) == set(range(8))
    assert kind.open(str(folder), "train", PathFilters(rows=5))[1] == every[:5]


def test_a_recipe_says_which_rows_it_learns(folder: Path) -> None:
    recipe = PathRecipe("base", str(folder), Path("out"), splits="template", batching="random")
    assert len(read_train_rows(recipe)[1]) == 8
    preferring = replace(recipe, method="kto", start="adapter")
    assert kind_of(preferring).labelled
    assert len(read_train_rows(preferring)[1]) > 8
    assert read_train_rows(replace(recipe, filters=PathFilters(paths=1)))[1]
    assert kind_of(recipe).questions(str(folder), "test") == {f"p{n}": f"q{n}" for n in range(8, 12)}


def test_a_completion_has_to_be_a_whole_path() -> None:
    whole = completion_of(("~directed_by", "has_genre"))
    SFT.check(whole)
    for cut in (whole[:-1], whole[:-3], json.dumps({"path": []}), json.dumps(["directed_by"])):
        with pytest.raises(BadRow, match="is no path, or is cut short"):
            SFT.check(cut)


def test_a_deletion_names_no_path_and_is_wrong() -> None:
    deletion = completion_of(())
    KTO.check(deletion)
    joint = PathRows("kto", "question", joint=True)
    joint.check(joint_completion([Candidate("Oru", ("by",))]))
    for cut in (joint_completion([]), joint_completion([Candidate("Oru", ())]), '{"paths": [{"path": ["by"]}]}'):
        with pytest.raises(BadRow, match="is no path"):
            joint.check(cut)


def test_a_right_reply_without_a_path_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(paths_sets.WORDS, (), "what is {}")
    folder = write_set(tmp_path)
    for kind in (SFT, KTO):
        with pytest.raises(UserError, match=r"is right, but names no path"):
            kind.open(str(folder), "train", PathFilters())


def test_a_set_of_another_kind_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        SFT.open(str(tmp_path / "none"), "train", PathFilters())
