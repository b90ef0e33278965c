"""A set of a small world in compact prompts, its verdicts beginning with their evidence."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from safe_stepwise.errors import UserError
from safe_stepwise.feedback import evidence_in, parse_feedback
from safe_stepwise.methods.prompt_sets import PromptSet
from safe_stepwise.methods.verifier import prompt_digest
from safe_stepwise.store.names import CONTEXTS
from safe_stepwise.taxonomy import labels
from scripts import build_verified, build_verifier_steps
from trainers.config import Filters, VerifierRecipe
from trainers.data import read_train_rows
from trainers.rows.base import kind_of

EARLY = PromptSet("compact", "evidence_first")
PLACE = re.compile(r" (.+?): (question|Step \d+|new)\.")


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    for split, rows in (("train", 40), ("validation", 20)):
        build_verified.main(
            f"--benchmark synthetic --input rows={rows},seed=1,passages=4,writer=plain --split "
            f"{split} --teacher annotations --output {folder} --workers 1".split()
        )
    return folder


def made(verified: Path, output: Path, *options: str) -> Path:
    asked = f"--verified {verified} --teacher annotations --rows 60 --pool 30 --output {output}"
    build_verifier_steps.main([*asked.split(), "--workers", "1", *options])
    return output / "safe-verifier-steps"


@pytest.fixture(scope="module")
def early(verified: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    told = ("--prompts", "compact", "--verdict-order", "evidence_first")
    output = tmp_path_factory.mktemp("early")
    return made(verified, output, *told, "--test-split", "validation")


@cache
def rows_of(folder: Path, config: str, split: str) -> list[dict[str, Any]]:
    files = sorted((folder / "data" / config).glob(f"{split}-*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def test_rows_are_those_of_the_papers_order_in_another(early: Path, verified: Path) -> None:
    output = early.parent.parent / "late"
    late = made(verified, output, "--prompts", "compact", "--test-split", "validation")
    for split in ("train", "test"):
        assert rows_of(late, "steps", split) == rows_of(early, "steps", split)
        ours, theirs = (rows_of(one, "prompt_completion", split) for one in (early, late))
        for one, other, row in zip(ours, theirs, rows_of(early, "steps", split), strict=True):
            assert one["id"] == other["id"] == row["id"]
            said, meant = (parse_feedback(r["completion"][0]["content"]) for r in (one, other))
            assert said.error_type == meant.error_type == labels()[row["error_type"]]
            assert said.guidance == meant.guidance
            assert len(one["prompt"][0]["content"].split()) <= 40


def test_compact_rows_are_briefly_worded(early: Path, verified: Path) -> None:
    paper = made(verified, early.parent.parent / "paper", "--test-split", "validation")
    sizes = []
    for folder in (early, paper):
        rows = [row for split in ("train", "test") for row in rows_of(folder, "steps", split)]
        steps = [row["current_step"] for row in rows if "####" not in row["current_step"]]
        sizes.append((sum(map(len, steps)) / len(steps), sum(len(row["guidance"]) for row in rows) / len(rows)))
        assert len({row["error_type"] for row in rows}) >= 9
    (step, guidance), (longer_step, longer_guidance) = sizes
    assert step < 0.85 * longer_step  # as full wordings are plain too
    assert guidance < 0.6 * longer_guidance


def test_the_evidence_is_quoted_from_what_the_row_shows(early: Path) -> None:
    places: Counter[str] = Counter()
    for row in rows_of(early, "prompt_completion", "train"):
        found = evidence_in(parse_feedback(row["completion"][0]["content"]).diagnosis)
        assert found is not None
        told = row["prompt"][1]["content"]
        if found.evidence.startswith("Passage"):
            lines = told.split("\n")
            number, _, rest = found.evidence.partition(": ")
            (line,) = (one for one in lines if one.startswith((f"{number}:", f"{number} (")))
            shown = json.loads(line.partition(": ")[2])
            sentences = [shown, *re.split(r"(?<=\.) (?=[A-ZŠÁ])", shown)]
            sentence = next(sentence for sentence in sentences if rest.startswith(f"{sentence} "))
            question = next(n for n, one in enumerate(lines) if one.startswith("Question: "))
            met = ["question", *(f"Step {n}" for n in range(1, len(lines) - question - 2))]
            for name, place in PLACE.findall(rest.removeprefix(sentence)):
                having = [one for n, one in enumerate(met, question) if name in lines[n]]
                assert [place] == (having or ["new"])[:1]
                places[place] += 1
        if found.comparison == "same":
            assert found.claim in told
    assert {*places} >= {"question", "Step 1", "Step 2", "new"}


def test_test_has_the_questions_of_the_benchmarks_own_split(early: Path) -> None:
    for split, origin in (("train", "train"), ("test", "validation")):
        rows = rows_of(early, "steps", split)
        assert rows
        assert {row["question_id"].split("-")[1] for row in rows} == {origin}


def test_the_record_says_how_rows_were_rendered(early: Path, tmp_path: Path) -> None:
    record = json.loads((early / "statistics" / "verifier_steps.json").read_text())
    assert record["prompts"] == EARLY.plain
    assert record["prompt_sha256"] == prompt_digest(prompt_set=EARLY)
    recipe = VerifierRecipe(base_model="m", dataset=str(early), output=tmp_path)
    assert kind_of(recipe).recorded_prompts == EARLY.plain
    assert kind_of(recipe).prompt_digest() == record["prompt_sha256"]


def test_twins_can_be_told_and_left_out(early: Path, tmp_path: Path) -> None:
    rows = rows_of(early, "steps", "train")
    own = {row["id"] for row in rows if CONTEXTS[row["context"]] == "original"}
    assert 0 < len(own) < len(rows)
    record = json.loads((early / "statistics" / "verifier_steps.json").read_text())
    every = [*rows, *rows_of(early, "steps", "test")]
    named = (record["contexts"][name] for name in CONTEXTS)
    assert list(named) == [sum(r["context"] == n for r in every) for n, _ in enumerate(CONTEXTS)]

    recipe = VerifierRecipe(base_model="m", dataset=str(early), output=tmp_path)
    alone = replace(recipe, filters=Filters(twins=False))
    assert {row["id"] for row in read_train_rows(recipe)[1]} == {row["id"] for row in rows}
    assert {row["id"] for row in read_train_rows(alone)[1]} == own

    before = Path(shutil.copytree(early, tmp_path / "before"))
    for file in (before / "data" / "steps").glob("*.parquet"):
        pq.write_table(pq.read_table(file).drop(["context"]), file)
    with pytest.raises(UserError, match=r"before: .* anew .*context"):
        read_train_rows(replace(alone, dataset=str(before)))
    assert read_train_rows(replace(recipe, dataset=str(before)))[1] == read_train_rows(recipe)[1]


def test_a_split_that_is_not_there_is_refused(verified: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--test-split test: the chosen rows are of"):
        made(verified, tmp_path, "--test-split", "test")
