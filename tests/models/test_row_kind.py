"""A kind of training row is its file, a command with its help, and the command's line: four files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.evaluators.verifier.step_rows import row, step, write_set
from tests.toys import Copy

KIND = '''\
"""Answers alone, of the steps that submit one."""

from dataclasses import dataclass, field
from typing import Annotated, Any

from safe_stepwise.records import identity
from safe_stepwise.steps import ANSWER_MARKER
from safe_stepwise.store.names import STEPS, STEPS_RECORD, VERIFIER_STEPS
from trainers.config import Recipe, RowFilters
from trainers.rows.base import BadRow, RowKind, Row, DatasetSource, find, kind_of, load

PROMPT = "Answer the question."


@dataclass(frozen=True, slots=True)
class AnswerFilters(RowFilters):
    longest: Annotated[int, "characters of an answer"] = 40


@dataclass(frozen=True, slots=True)
class AnswerRecipe(Recipe):
    filters: AnswerFilters = field(default_factory=AnswerFilters)


class AnswerRows(RowKind):
    def rows(self, dataset: str, split: str, filters: AnswerFilters) -> tuple[DatasetSource, list[Row]]:
        source, steps = _steps(dataset, split)
        return source, [made for step in steps if len((made := _row(step))["answer"]) <= filters.longest]

    def questions(self, dataset: str, split: str) -> dict[str, Any]:
        return {step["id"]: step["question_id"] for step in _steps(dataset, split)[1]}

    def check(self, completion: str) -> None:
        if not completion.strip():
            raise BadRow("has no answer")

    def prompt_digest(self) -> str:
        return identity([PROMPT])


@kind_of.register
def _(recipe: AnswerRecipe) -> RowKind:
    return AnswerRows()


def _steps(dataset: str, split: str) -> tuple[DatasetSource, list[Row]]:
    source, place = find(dataset, VERIFIER_STEPS, STEPS_RECORD)
    steps = load(dataset, place, source.revision, STEPS, split)
    return source, [step for step in steps if ANSWER_MARKER in step["current_step"]]


def _row(step: Row) -> dict[str, Any]:
    answer = step["current_step"].partition(ANSWER_MARKER)[2].partition(" (")[0].strip()
    turns = [("system", PROMPT), ("user", step["question"])]
    return {
        "id": step["id"],
        "prompt": [{"role": role, "content": content} for role, content in turns],
        "completion": [{"role": "assistant", "content": answer}],
        "answer": answer,
    }
'''
COMMAND = '''\
"""Train a model to give answers alone, by a recipe."""

from scripts.cli import run
from scripts.training import TrainingCommand
from trainers.rows.answers import AnswerRecipe

main = TrainingCommand("train_answers", __doc__, AnswerRecipe)

if __name__ == "__main__":
    run(main)
'''
HELP = "examples:\n  safe-stepwise train_answers --config my.yaml --dataset build/steps --output build/answers\n"
ROWS = """
import json, sys
from pathlib import Path

from trainers.config import read_recipe
from trainers.data import read_train_rows
from trainers.rows.answers import AnswerRecipe
from trainers.rows.base import kind_of

recipe = read_recipe(Path(sys.argv[1]), {"filters.longest": sys.argv[2]}, AnswerRecipe)
print(json.dumps([[row["id"], row["completion"][0]["content"]] for row in read_train_rows(recipe)[1]]))
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    copy = Copy(tmp_path_factory.mktemp("house"))
    copy.add("trainers/rows/answers.py", KIND)
    copy.add("scripts/train_answers.py", COMMAND)
    copy.add("scripts/help/train_answers.txt", HELP)
    line = "  train_answers: a model that gives answers alone\n"
    copy.insert("safe_stepwise/commands/commands.yaml", line, before="  train_paths: ")
    assert len(copy.touched) == 4
    return copy


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe of a set with two answers, beside a step that gives none."""
    texts = ["####ANSWER: Vel", "####ANSWER: The Isk of Oru"]
    rows = [row(f"r{n}", [step(1, text, "Final Answer")], question=f"q{n}") for n, text in enumerate(texts)]
    rows.append(row("none", [step(1, "According to Passage 1, Oru lies on the Vel.")], question="q9"))
    steps = write_set(tmp_path / "steps", train=rows, test=rows[:1])
    cpu = {"tuning": "full", "quantization": "none", "dtype": "float32", "gradient_checkpointing": False}
    one = {"epochs": 1, "effective_batch": 1, "device_batch": 1}
    file = tmp_path / "my.yaml"
    file.write_text(yaml.safe_dump({"base_model": "none", "dataset": str(steps), "output": "run", **cpu, **one}))
    return file


def command(*arguments: str) -> list[str]:
    return ["-m", "safe_stepwise.commands.main", "train_answers", *arguments]


def test_its_command_and_options_are_shown(house: Copy) -> None:
    assert "train_answers" in house.run("-m", "safe_stepwise.commands.main", "--help")
    shown = house.run(*command("--help-all"))
    assert "Train a model to give answers alone" in shown
    assert "--filters.longest N" in shown
    assert "--lora-rank" in shown
    assert HELP in shown


def test_its_rows_are_those_of_its_recipe(house: Copy, recipe: Path) -> None:
    assert json.loads(house.run("-c", ROWS, str(recipe), "40")) == [["r0", "Vel"], ["r1", "The Isk of Oru"]]
    assert json.loads(house.run("-c", ROWS, str(recipe), "5")) == [["r0", "Vel"]]


def test_it_is_trained_on(house: Copy, recipe: Path, base: Path, tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="no trl here: `make test-vllm` runs the model tests")
    output = tmp_path / "run"
    house.run(*command("--config", str(recipe), "--base_model", str(base), "--output", str(output)))
    record = json.loads((output / "training.json").read_bytes())
    assert record["dataset"]["rows"] == 2
    assert record["recipe"]["filters"] == {"rows": None, "longest": 40}
    assert (output / "model").is_dir()
