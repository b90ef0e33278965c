"""Steps that a verifier accepted though they are unfaithful, mined as rows to train on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from builders.steps.refined import REFINED, STATISTICS, read_refined
from builders.steps.refinement import FOUND_CORRECT, read_accepted
from evaluators.faithfulness.command import ACCEPTED
from safe_stepwise.errors import UserError
from safe_stepwise.store.files import sha256_of
from safe_stepwise.taxonomy import CORRECT
from scripts import build_verified, evaluate_stepwise, refine_verifier_steps


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("verified")
    build_verified.main(
        ["--benchmark", "synthetic", "--input", "rows=60,seed=2", "--split", "train",
         "--teacher", "annotations", "--output", str(output)]
    )  # fmt: skip
    return output


@pytest.fixture(scope="module")
def accepted(verified: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a verifier of poor sight accepted of the training questions."""
    output = tmp_path_factory.mktemp("evaluated")
    evaluate_stepwise.main(
        ["--questions", str(verified), "--split", "train", "--method", "safe",
         "--generator", "symbolic:error_rate=0.5,seed=1",
         "--verifier", "symbolic:error_rate=0.8,seed=2", "--output", str(output),
         "--cache", str(output / "cache.sqlite")]
    )  # fmt: skip
    return output / ACCEPTED


def refined(verified: Path, accepted: Path, output: Path) -> dict[str, Any]:
    refine_verifier_steps.main(
        ["--verified", str(verified), "--teacher", "annotations", "--accepted", str(accepted),
         "--rows", "100", "--output", str(output)]
    )  # fmt: skip
    found: dict[str, Any] = json.loads((output / STATISTICS).read_text())
    return found


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_rows_have_the_checkers_label(verified: Path, accepted: Path, tmp_path: Path) -> None:
    found = refined(verified, accepted, tmp_path)
    rows = read_refined(tmp_path / REFINED)
    listed = {(line["question_id"], line["text"]) for line in lines_of(accepted)}
    assert rows
    assert len(rows) == found["rows"]
    for row in rows:
        assert row.feedback.error_type != CORRECT
        assert (row.origin, row.question.split) == ("refined", "train")
        assert (row.question.id, row.step.text) in listed
    assert found["simulated"]
    assert found["accepted"] == {"file": ACCEPTED, "sha256": sha256_of(accepted), "steps": len(lines_of(accepted))}
    assert found["verifier"].startswith("symbolic:error_rate=0.8")


def test_every_step_is_accounted_for(verified: Path, accepted: Path, tmp_path: Path) -> None:
    found = refined(verified, accepted, tmp_path)
    tries, steps = found["tries"], len(lines_of(accepted))
    assert tries["checked"] + tries.get("checker abstains", 0) == steps
    assert found["disagreements"] == tries["checked"] - tries.get(FOUND_CORRECT, 0)
    assert found["rows"] + sum(found["refused"].values()) == found["disagreements"]


def test_the_same_steps_give_the_same_bytes(verified: Path, accepted: Path, tmp_path: Path) -> None:
    refined(verified, accepted, tmp_path / "one")
    refined(verified, accepted, tmp_path / "two")
    for name in (REFINED, STATISTICS):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def changed(accepted: Path, folder: Path, **changes: Any) -> Path:
    file = folder / "changed.jsonl"
    lines = ({**line, **changes} for line in lines_of(accepted))
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_steps_that_cite_other_passages_are_counted(verified: Path, accepted: Path, tmp_path: Path) -> None:
    file = changed(accepted, tmp_path, passages_sha256="0" * 64)
    found = refined(verified, file, tmp_path / "out")
    assert found["tries"] == {"of other passages (another --seed)": len(lines_of(accepted))}
    assert found["rows"] == 0


def test_only_training_questions_will_do(verified: Path, accepted: Path, tmp_path: Path) -> None:
    file = changed(accepted, tmp_path, question_id="another")
    with pytest.raises(UserError, match="no step is of a training question"):
        refined(verified, file, tmp_path / "out")
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text(accepted.read_text() + file.read_text().splitlines(keepends=True)[0])
    found = refined(verified, mixed, tmp_path / "out")
    assert found["questions"]["not among the training questions"] == 1


@pytest.mark.parametrize(
    ("text", "told"), [("{}\n", "line 1: is no accepted step"), ("\n[1]\n", "line 2"), ("", "holds no step")]
)
def test_a_file_of_something_else_is_one_line(tmp_path: Path, text: str, told: str) -> None:
    (file := tmp_path / "steps.jsonl").write_text(text)
    with pytest.raises(UserError, match=told) as raised:
        read_accepted(file)
    assert len(str(raised.value).splitlines()) == 1
    with pytest.raises(UserError, match="cannot be read"):
        read_accepted(tmp_path / "none.jsonl")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"--accepted": "x", "--generator": "symbolic"}, "--generator goes with the loop"),
        ({"--accepted": "x", "--limit": "3"}, "--limit goes with the loop"),
        ({"--generator": "symbolic"}, "give --generator and --verifier, or --accepted"),
        ({}, "give --generator and --verifier, or --accepted"),
    ],
)
def test_either_the_loop_runs_or_its_steps_are_given(tmp_path: Path, given: Mapping[str, str], told: str) -> None:
    options = {"--verified": str(tmp_path), "--teacher": "annotations", "--rows": "1",
               "--output": str(tmp_path / "out"), **given}  # fmt: skip
    with pytest.raises(UserError, match=told):
        refine_verifier_steps.main([part for pair in options.items() for part in pair])
