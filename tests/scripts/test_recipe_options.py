"""The help of the commands that train: it lists what there is to choose."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from builders.paths.weak import KINDS, POSITIVE
from releases.reading import RECIPES
from safe_stepwise.errors import UserError
from scripts import train_encoder, train_generator, train_paths, train_verifier
from scripts.cli import HELP
from trainers.config import EncoderRecipe, GeneratorRecipe, PathRecipe, VerifierRecipe, keys, read_recipe

COMMANDS: dict[str, tuple[Any, Any]] = {
    "train_paths": (train_paths.main, PathRecipe),
    "train_verifier": (train_verifier.main, VerifierRecipe),
    "train_encoder": (train_encoder.main, EncoderRecipe),
    "train_generator": (train_generator.main, GeneratorRecipe),
}


@pytest.fixture(params=COMMANDS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def said(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """The help of a command."""
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit, match="0"):
        COMMANDS[name][0](["--help-all"])
    return capsys.readouterr().out


def test_every_choice_is_listed(name: str, said: str) -> None:
    assert said.startswith(f"Usage: safe-stepwise {name} --config FILE")
    found = re.findall(r"--([\w.-]+) \[?\{([^}]+)\}", said)
    shown = {option.replace("-", "_"): choices.split(",") for option, choices in found}
    refused = {}
    for key in keys(COMMANDS[name][1]):
        try:
            read_recipe(None, {key.name: "nosuch"}, COMMANDS[name][1])
        except UserError as error:
            _, lists, choices = str(error).partition("'nosuch' is not one of ")
            if lists:
                refused[key.name] = choices.split(", ")
    assert {"quantization", "tuning", "dtype"} < set(refused)
    assert {key: shown[key] for key in refused} == refused


def test_each_recipe_names_its_command() -> None:
    used = {
        file: re.findall(r"(?:-m scripts\.|safe-stepwise )(\w+) ", file.read_text()) for file in RECIPES.glob("*.yaml")
    }
    for file, names in used.items():
        assert len({*names}) == 1, file
        assert {*names} <= COMMANDS.keys(), file


def test_the_examples_of_the_help_are_commands(name: str) -> None:
    text = (HELP / f"{name}.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = re.findall(rf"(?:-m scripts\.|safe-stepwise ){name} (.*)", text)
    assert lines
    for line in lines:
        told = shlex.split(line)
        command = COMMANDS[name][0]
        config, options, _ = command.parsed_values(command.make_context(name, told))
        assert config is not None
        read_recipe(RECIPES / config.name, options, COMMANDS[name][1])


def test_the_kinds_of_negatives_are_the_builders() -> None:
    (told,) = (key.help for key in keys(PathRecipe) if key.name == "filters.negatives")
    listed = told.partition(": ")[2].partition(";")[0].split(", ")
    assert listed == [kind for kind in KINDS if kind != POSITIVE]


def test_a_choice_that_is_none_lists_all() -> None:
    with pytest.raises(UserError, match="--splits: 'topic' is not one of question, template"):
        read_recipe(None, {"splits": "topic"}, PathRecipe)
