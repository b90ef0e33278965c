"""Pairs of steps and single ones that a generator can learn from, opened as anyone would."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset

from builders.steps.configs import preference_counts, right_steps, select_rejected
from builders.steps.rows import StepRow
from safe_stepwise.methods.generator import generator_request, prompt_digest
from safe_stepwise.methods.prompt_sets import PromptSet
from safe_stepwise.records import Feedback, Passage, Question, Step
from safe_stepwise.steps import parse_step
from safe_stepwise.taxonomy import CORRECT, labels
from scripts import build_verified, build_verifier_steps

SPLITS = ("train", "test")


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("preference")
    build_verified.main(
        f"--benchmark synthetic --input rows=60,seed=1,passages=4,writer=plain --split train "
        f"--teacher annotations --output {folder} --workers 1".split()
    )
    build_verifier_steps.main(
        f"--verified {folder} --teacher annotations --rows 200 --output {folder} --workers 1 --prompts compact".split()
    )
    return folder / "safe-verifier-steps"


def opened(steps: Path, config: str) -> dict[str, Any]:
    return dict(load_dataset(str(steps), config, cache_dir=str(steps.parent / "cache")))


def asked_for(row: dict[str, Any]) -> list[dict[str, str]]:
    """What the loop sends a generator for the step of a row."""
    passages = [Passage(p["title"], (p["text"],)) for p in row["passages"]]
    previous = [*map(parse_step, row["previous_steps"])]
    told = generator_request(row["question"], passages, previous, prompt_set=PromptSet("compact")).messages
    return [{"role": turn.role, "content": turn.content} for turn in told]


def test_a_wrong_step_stands_beside_the_one_to_take(steps: Path) -> None:
    rows, pairs = opened(steps, "steps"), opened(steps, "preference")
    seen = 0
    for split in SPLITS:
        by_id = {row["id"]: row for row in rows[split]}
        taken = {
            (row["question_id"], json.dumps(row["passages"]), *row["previous_steps"][:n]): step
            for row in rows[split]
            for n, step in enumerate([*row["previous_steps"], row["current_step"]])
            if n < len(row["previous_steps"]) or labels()[row["error_type"]] == CORRECT
        }
        for pair in pairs[split]:
            row = by_id[pair["id"]]
            assert labels()[row["error_type"]] != CORRECT
            assert pair["prompt"] == asked_for(row)
            ((chosen,), (wrong,)) = pair["chosen"], pair["rejected"]
            assert {chosen["role"], wrong["role"]} == {"assistant"}
            assert wrong["content"] == row["current_step"] != chosen["content"]
            place = (row["question_id"], json.dumps(row["passages"]), *row["previous_steps"])
            assert chosen["content"] == taken[place]
            assert parse_step(chosen["content"]).number == row["position"]
            seen += 1
    assert seen > 30


def test_kto_has_every_step_and_says_which_are_right(steps: Path) -> None:
    rows, told = opened(steps, "steps"), opened(steps, "kto")
    for split in SPLITS:
        by_id = {row["id"]: row for row in rows[split]}
        assert sorted(told[split]["id"]) == sorted(by_id)
        for one in told[split]:
            row = by_id[one["id"]]
            assert one["label"] == (labels()[row["error_type"]] == CORRECT)
            assert one["completion"] == [{"role": "assistant", "content": row["current_step"]}]
            assert one["prompt"] == asked_for(row)
        asked = [by_id[id_]["question_id"] for id_ in told[split]["id"]]
        met = sum(first == second for first, second in pairwise(asked))
        assert met <= 1  # the last ones may have nobody to change places with
    assert {label for split in SPLITS for label in told[split]["label"]} == {True, False}


def test_the_record_and_the_card_count_them(steps: Path) -> None:
    record = json.loads((steps / "statistics" / "verifier_steps.json").read_text("utf-8"))
    pairs, told = opened(steps, "preference"), opened(steps, "kto")
    assert record["generator_prompt_sha256"] == prompt_digest(PromptSet("compact"))
    for split, found in record["preference"].items():
        assert found["pairs"] == pairs[split].num_rows == record["files"]["preference"][split]["rows"]
        assert found["desirable"] == sum(told[split]["label"])
        assert found["desirable"] + found["undesirable"] == told[split].num_rows
        assert found["pairs"] + found["unpaired"] == found["undesirable"]
    card = (steps / "README.md").read_text("utf-8")
    number = sum(found["pairs"] for found in record["preference"].values())
    assert f"for a *generator*, {number} pairs in the form that `DPOTrainer` takes" in card
    assert record["generator_prompt_sha256"] in card


def row(text: str, label: str, *previous: str, page: str = "Oru lies on the Vel.") -> StepRow:
    question = Question("q", "b", "train", "Where?", "Vel", passages=(Passage("Oru", (page,)),))
    before = tuple(Step(n, said, "Attribution") for n, said in enumerate(previous, 1))
    step = Step(len(previous) + 1, text, "Attribution")
    origin: Any = "ideal" if label == CORRECT else "injected"
    return StepRow(question, before, step, Feedback(label, "d", "g"), origin, "t")


def test_what_is_right_is_known_of_the_same_place_alone() -> None:
    wrong = row("It lies on the Dol.", "Contradictory")
    right = right_steps([wrong, row("It is wide.", CORRECT, "It lies on the Vel.")])
    assert sorted(right.values()) == ["Step 1: It lies on the Vel. (Attribution)", "Step 2: It is wide. (Attribution)"]
    mined = replace(row("It is old.", CORRECT, "It lies on the Dol."), origin="refined")
    assert [*right_steps([mined]).values()] == ["Step 2: It is old. (Attribution)"]
    elsewhere = row("It lies on the Dol.", "Contradictory", page="Oru lies on the Dol.")
    later = row("It lies on the Dol.", "Contradictory", "Oru is a town.")
    assert select_rejected([wrong, elsewhere, later], right) == [wrong]
    assert preference_counts([wrong, elsewhere]) == {"pairs": 0, "unpaired": 2, "desirable": 0, "undesirable": 2}
