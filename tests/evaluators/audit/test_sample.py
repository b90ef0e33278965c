"""Samples of what the builders write: balanced, the same again, of made-up and of real rows."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evaluators.audit.report import check_rows
from evaluators.audit.rows import balance_keys, draw, read_strata, select_rows
from evaluators.audit.score import parse_judgement, score
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import AUDITED
from scripts import build_verified, build_verifier_steps
from tests.evaluators.audit.made import said
from tests.evaluators.verifier.step_rows import row as step_row
from tests.evaluators.verifier.step_rows import step, write_set


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labels and steps of made-up questions, in one folder as a release has them."""
    folder = tmp_path_factory.mktemp("built") / "datasets"
    for split in ("train", "validation"):
        verify(folder, "synthetic", "rows=120,seed=3,noise=0.3", split)
    make_steps(folder, 120)
    return folder


def verify(folder: Path, benchmark: str, source: str, split: str, *options: str) -> None:
    named = ["--benchmark", benchmark, "--input", source, "--split", split, *options]
    common = ["--teacher", "annotations", "--workers", "1", "--output", str(folder)]
    build_verified.main([*named, *common])


def make_steps(folder: Path, number: int) -> None:
    common = ["--teacher", "annotations", "--workers", "1", "--output", str(folder)]
    build_verifier_steps.main(["--verified", str(folder), "--rows", str(number), *common])


@pytest.mark.parametrize("of", AUDITED)
def test_strata_are_drawn_alike_as_far_as_they_go(built: Path, of: Any) -> None:
    found = draw(built, of, 40, 1)
    drawn = Counter(row.stratum for row in found.rows)
    assert sum(drawn.values()) == len({row.key for row in found.rows}) == 40
    most = max(drawn.values())
    for stratum, size in found.sizes.items():
        assert drawn[stratum] >= min(size, most - 1)
        assert stratum[1] != "unparsed"
    # In rounds: the first rows are of all kinds.
    first = [row.stratum for row in found.rows[: len(found.sizes)]]
    assert sorted(first) == sorted(found.sizes)


@pytest.mark.parametrize("of", AUDITED)
def test_a_draw_is_the_same_again_and_another_by_another_seed(built: Path, of: Any) -> None:
    one, again, other = (draw(built, of, 40, 1), draw(built.parent, of, 40, 1), draw(built, of, 40, 2))
    assert one == again
    assert one.sha256 != other.sha256
    assert {row.key for row in one.rows} != {row.key for row in other.rows}
    fewer = draw(built, of, 20, 1)
    assert fewer.rows == one.rows[:20]
    assert len(draw(built, of, 10_000, 1).rows) == len(read_strata(built, of))


def test_a_label_says_what_the_row_says(built: Path) -> None:
    for row in draw(built, "labels", 30, 1).rows:
        assert row.stratum == ("synthetic", row.content["label"])
        assert row.content["path"] or row.content["label"] != "none"
        assert row.content["explanation"]
        marked = [p for p in row.content["passages"] if p["supporting"]]
        assert marked
        assert all(p["gold"] for p in marked)


def test_an_id_of_two_splits_is_one_row(tmp_path: Path) -> None:
    for split in ("train", "validation"):
        verify(tmp_path, "synthetic", "rows=30,seed=3", split)
    # Both splits of a seed have ids of their own; let the second repeat the first.
    data = tmp_path / "safe-verified-multihop" / "data" / "synthetic_labeled"
    (first,) = data.glob("train-*")
    before = read_strata(tmp_path, "labels")
    (second,) = data.glob("validation-*")
    second.write_bytes(first.read_bytes())
    after = read_strata(tmp_path, "labels")
    assert len(before) == 60
    assert len(after) == len(draw(tmp_path, "labels", 99, 1).rows) == 30


def test_groups_that_run_out_leave_room_for_others() -> None:
    groups = {("b", "rare"): [("b", "r")], ("b", "often"): [("b", str(n)) for n in range(9)]}
    drawn = balance_keys(groups, 6, seed=3)
    assert ("b", "r") in drawn[:2]
    assert len(drawn) == 6


def test_folders_that_hold_no_such_set_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no safe-verified-multihop in it; give the --output of"):
        draw(tmp_path, "labels", 9, 0)
    with pytest.raises(UserError, match=r"no safe-verifier-steps in it; give the --output of"):
        draw(tmp_path, "steps", 9, 0)


def test_a_row_without_a_label_is_named(tmp_path: Path) -> None:
    broken = {**step_row("a", [step(1, "Oru lies on the Vel.")]), "error_type": -1}
    folder = write_set(tmp_path / "steps", train=[broken])
    with pytest.raises(UserError, match=r"row 'a' cannot be read \(its error_type is missing"):
        draw(folder, "steps", 9, 0)


def test_scores_are_of_the_rows_that_were_judged(built: Path, tmp_path: Path) -> None:
    made = draw(built, "labels", 5, 1)
    lines = [{"benchmark": row.key[0], "id": row.key[1], "sha256": row.sha256} for row in made.rows]
    scores = {"of": "labels", "judged": [[*line.values()] for line in lines]}
    check_rows(scores, tmp_path / "a.json", built)
    scores["judged"][0][2] = "0" * 64  # type: ignore[index]
    match = r"a\.json: 1 of the 5 rows that were judged are not, or not like that, in .*datasets"
    with pytest.raises(UserError, match=match):
        check_rows(scores, tmp_path / "a.json", built)


def test_real_rows_are_drawn_and_shown(real_data: Path, tmp_path: Path) -> None:
    for name in ("musique", "hotpotqa", "2wikimultihopqa"):
        verify(
            tmp_path,
            name,
            str(real_data / f"{name}_dev.jsonl"),
            "validation",
            *("--limit", "60", "--evaluation-size", "5"),
        )
    make_steps(tmp_path, 60)
    made = draw(tmp_path, "labels", 24, 7)
    assert {row.key[0] for row in made.rows} == {"musique", "hotpotqa", "2wikimultihopqa"}
    assert sum(1 for row in made.rows if row.content["label"] != "none") > 6
    supporting = [p["supporting"] for row in made.rows for p in row.content["passages"]]
    assert sum(map(bool, supporting)) > 24
    steps = draw(tmp_path, "steps", 24, 7)
    assert len({row.stratum for row in steps.rows}) > 8
    for of, sample in (("labels", made), ("steps", steps)):
        keys = [row.key for row in sample.rows]
        assert select_rows(tmp_path, of, keys) == {row.key: row for row in sample.rows}  # type: ignore[arg-type]


def test_what_is_said_of_a_sample_can_be_scored(built: Path) -> None:
    made = draw(built, "steps", 6, 1)
    lines = [
        said(row.key[1], of="steps", benchmark=row.key[0], stratum=[*row.stratum], label="right") for row in made.rows
    ]
    found = score([parse_judgement(json.dumps(line)) for line in lines])
    assert (found.rows, sum(group.rows for group in found.parts["error_type"])) == (6, 6)
