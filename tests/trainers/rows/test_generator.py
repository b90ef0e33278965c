"""A generator's rows: the next step, and a rejected one anew, as the loop asks for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from safe_stepwise.errors import UserError
from safe_stepwise.methods.generator import generator_request
from safe_stepwise.methods.prompt_sets import PAPER, PromptSet
from safe_stepwise.records import Feedback, Passage
from safe_stepwise.steps import parse_step
from tests.evaluators.verifier.step_rows import row, step, write_set
from trainers.config import GeneratorFilters, GeneratorRecipe, VerifierRecipe
from trainers.data import read_train_rows
from trainers.rows.base import BadRow, fingerprint, kind_of
from trainers.rows.generator import GeneratorRows

ONE = step(1, "According to Passage 1, Oru lies on the Vel.")
TWO = step(2, "From Step 1, the river is the Vel.", "Logical")
LAST = step(3, "####ANSWER: Vel", "Final Answer")
WRONG = step(2, "According to Passage 1, Oru lies on the Isk.")
EARLY = PromptSet("compact", "evidence_first")


@pytest.fixture
def steps(tmp_path: Path) -> str:
    rows = [
        row("a", [ONE]),
        row("b", [ONE, WRONG], "Contradictory", "injected"),
        row("c", [ONE, TWO, LAST]),
        row("d", [WRONG.replace("2", "1", 1)], "Contradictory", "injected", question="q2"),
    ]
    other = row("t", [ONE], question="q3")
    return str(write_set(tmp_path / "set", train=rows, test=[other]))


def asked(found: list[Any]) -> list[tuple[str, str]]:
    return [(one["prompt"][1]["content"], one["completion"][0]["content"]) for one in found]


def test_the_next_steps_are_those_of_the_ideal_trajectories(steps: str) -> None:
    _, found = GeneratorRows().open(steps, "train", GeneratorFilters(tasks=("next",)))
    assert sorted(said for _, said in asked(found)) == sorted([ONE, TWO, LAST])
    for told, said in asked(found):
        assert f"Write Step {parse_step(said).number}." in told
        assert "Rejected" not in told


def test_a_rejected_step_is_written_anew_by_what_was_said_of_it(steps: str) -> None:
    """Of the second question nothing but the wrong step is known, so that it makes no row."""
    _, found = GeneratorRows().open(steps, "train", GeneratorFilters(tasks=("rewrite",)))
    ((told, said),) = asked(found)
    assert said == TWO
    assert f'Rejected: "{WRONG}"' in told
    assert 'Fault: "Contradictory"' in told
    _, short = GeneratorRows(EARLY).open(steps, "train", GeneratorFilters(tasks=("rewrite",)))
    ((told, _),) = asked(short)
    places = "Oru: Step 1. Vel: Step 1. Isk: new."
    why = f"Passage 1: Oru lies on the Vel. It is old. {places} Step: Isk. Different."
    assert f'Why: "{why}"' in told


@pytest.mark.parametrize("prompt_set", [PAPER, EARLY])
def test_rows_are_the_loops_own_requests(steps: str, prompt_set: PromptSet) -> None:
    pages = [Passage("Oru", ("Oru lies on the Vel. It is old.",))]
    done, said = [parse_step(ONE)], Feedback("Correct", "So it is.", "Go on.")
    possible = {
        generator_request("What is asked by q1?", pages, done, advice, prompt_set=prompt_set).messages[1].content
        for advice in (None, said)
    }
    _, found = GeneratorRows(prompt_set).open(steps, "train", GeneratorFilters())
    assert len(found) == len({one["id"] for one in found}) == 4
    told = {told for told, said in asked(found) if said == TWO and "Rejected" not in told}
    assert told
    assert told <= possible
    again = GeneratorRows(prompt_set).open(steps, "train", GeneratorFilters())[1]
    assert fingerprint(again) == fingerprint(found)
    kind = GeneratorRows(prompt_set)
    assert {*kind.questions(steps, "train")} == {one["id"] for one in found}
    assert {*kind.questions(steps, "test").values()} == {("synthetic", "q3")}
    assert kind.recorded_prompts == {"role": "generator", **prompt_set.plain}


def test_filters_that_leave_nothing_are_refused(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "set", train=[row("d", [WRONG], "Contradictory", "injected")])
    with pytest.raises(UserError, match="left by the filters"):
        GeneratorRows().open(str(folder), "train", GeneratorFilters())


def test_a_completion_has_to_be_a_whole_step(steps: str) -> None:
    check = GeneratorRows().check
    check(ONE)
    with pytest.raises(BadRow, match="is no step, or is cut short"):
        check(ONE[:-3])


def test_the_recipe_says_which_prompts(steps: str, tmp_path: Path) -> None:
    base: dict[str, Any] = {"base_model": "m", "dataset": steps, "output": tmp_path}
    short = GeneratorRecipe(**base, prompts="compact", verdict_order="evidence_first")
    assert kind_of(short).recorded_prompts == {"role": "generator", **EARLY.plain}
    assert kind_of(GeneratorRecipe(**base)).recorded_prompts == {"role": "generator"}
    assert len(read_train_rows(GeneratorRecipe(**base))[1]) == 4
    with pytest.raises(UserError, match="build it with --prompts compact --verdict-order label_f"):
        kind_of(VerifierRecipe(**base, prompts="compact"))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"tuning": "full"}, "quantization: is for lora"),
        ({"tuning": "full", "quantization": "none", "start": "a"}, "start: is an adapter"),
    ],
)
def test_full_tuning_has_no_adapter(tmp_path: Path, said: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        VerifierRecipe(base_model="m", dataset="d", output=tmp_path, **said)
