"""The command that holds the judges of chains against seeded errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.verified.build import build
from builders.verified.collect import Build
from builders.verified.teachers.annotations import AnnotationsTeacher
from cards.datasets import CARDS
from safe_stepwise.errors import UserError
from scripts import calibrate_faithfulness
from scripts.calibrate_faithfulness import FILES
from studies.calibration.cases import WRONG
from tests import sizes

CHECKED = sizes.size(120, 30)
"""Questions of real rows that a test looks at."""


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verified")
    plan = Build("synthetic", "rows=60,seed=4,noise=0.1", "train", AnnotationsTeacher, output=folder)
    build(plan, CARDS)
    return folder


def shares(folder: Path, benchmark: str, setting: str, judge: str = "house") -> dict[str, float]:
    """What passes a judge, by kind."""
    found = json.loads((folder / "calibration.json").read_bytes())["benchmarks"][benchmark]
    table = next(t for t in found["tables"] if (t["judge"], t["setting"]) == (judge, setting))
    return {kind: share["value"] for kind, share in table["passed"].items()}


def real(data: Path, *names: str) -> list[str]:
    return [part for name in names for part in ("--questions", str(data / name))]


def test_the_same_bytes_twice_and_in_another_folder(verified: Path, tmp_path: Path) -> None:
    written = []
    for name in ("one", "other"):
        arguments = ["--verified", str(verified), "--retrieval", "words", "--output"]
        calibrate_faithfulness.main([*arguments, str(tmp_path / name)])
        written.append([(tmp_path / name / file).read_bytes() for file in FILES])
    assert written[0] == written[1]
    found = shares(tmp_path / "one", "synthetic", "alone")
    assert found["true"] >= 0.95
    assert max(found[kind] for kind in WRONG if kind in found) <= 0.1


def test_two_wiki_facts_are_told_from_corrupted_ones(real_data: Path, tmp_path: Path) -> None:
    files = real(real_data, "2wikimultihopqa_train.jsonl")
    arguments = ["--benchmark", "2wikimultihopqa", "--rows", str(CHECKED)]
    calibrate_faithfulness.main([*files, *arguments, "--output", str(tmp_path)])
    found = shares(tmp_path, "2wikimultihopqa", "alone")
    assert found["true"] >= 0.97
    assert max(found["wrong tail"], found["wrong head"]) <= 0.03
    assert found["wrong relation"] <= 0.08
    assert found["reversed"] <= 0.1
    paper = shares(tmp_path, "2wikimultihopqa", "alone", "paper, words")
    assert paper["reversed"] > 0.9, "the paper's rule takes no direction: mended, then say so"


def test_film_paths_and_one_substitution_each(real_data: Path, tmp_path: Path) -> None:
    kb, questions = real_data / "metaqa_kb.txt.gz", real_data / "metaqa_questions.jsonl"
    # All of them, as gold paths are derived from what questions of a template have in common.
    arguments = ["--kb", str(kb), "--kb-questions", str(questions), "--rows", str(sizes.size(45, 15))]
    calibrate_faithfulness.main([*arguments, "--output", str(tmp_path)])
    found = shares(tmp_path, "metaqa", "in its path")
    assert found["true"] >= 0.99
    assert all(1 - found[kind] >= 0.95 for kind in WRONG)


def test_derivations_of_people(real_data: Path, tmp_path: Path) -> None:
    derivations = real_data / "r4c_derivations.jsonl"
    arguments = [*real(real_data, "hotpotqa_dev.jsonl"), "--benchmark", "hotpotqa"]
    arguments += ["--rows", str(sizes.size(40, 20)), "--derivations", str(derivations), "--output", str(tmp_path)]
    calibrate_faithfulness.main(arguments)
    assert shares(tmp_path, "hotpotqa", "in its path")["true"] >= 0.9


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to calibrate on"),
        (["--verified", "x", "--questions", "y"], "give one"),
        (["--kb", "x"], "--kb and --kb-questions go together"),
        (["--kb", "x", "--kb-questions", "y"], "x: can't be read"),
        (["--verified", "x", "--retrieval", "word"], "did you mean words"),
        (["--verified", "nowhere"], "give the --output of build_verified"),
    ],
)
def test_mistakes_are_told_in_a_line(arguments: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=said) as found:
        calibrate_faithfulness.main([*arguments, "--output", str(tmp_path)])
    assert "\n" not in str(found.value)


def test_questions_without_a_path_are_told(real_data: Path, tmp_path: Path) -> None:
    arguments = [*real(real_data, "hotpotqa_train.jsonl"), "--benchmark", "hotpotqa"]
    with pytest.raises(UserError, match="HotpotQA's need --derivations"):
        calibrate_faithfulness.main([*arguments, "--output", str(tmp_path)])
