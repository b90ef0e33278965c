"""An option of `evaluate_stepwise` is a field of the method's options and one of the command's: nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click
import pytest

from evaluators.comparison.systems import System, find_differing
from evaluators.run.options import Options
from safe_stepwise.commands.options import CommandLine, OptionSpec, read_option_specs
from safe_stepwise.commands.values import Commas
from safe_stepwise.engines.client import Client, ResponseCache
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.methods import METHODS
from safe_stepwise.records import Question, Trajectory
from scripts.cli import HELP


@dataclass(frozen=True, slots=True)
class Pausing:
    """The options of a method."""

    pauses: int = 0


class Toy:
    """A method that has them."""

    name, title, roles, prompts, options = "toy", "Toy", ("generator",), ("loop/generate",), Pausing

    async def answer(self, question: Question, clients: dict[str, Client], options: Pausing) -> Trajectory:
        return Trajectory(question.id, self.name, (), (), f"after {options.pauses}", "answered")


@dataclass(frozen=True, slots=True)
class ToyOptions(Options):
    """Those of the command, with the one that is new."""

    pauses: Annotated[Sequence[int], Commas()] = ()


def parsed(*arguments: str) -> ToyOptions:
    words = {
        **read_option_specs(HELP / "evaluate_stepwise.yaml"),
        "pauses": OptionSpec("--pauses", "P", "rests", "how", "pauses"),
    }
    line = CommandLine(ToyOptions, words, ("generate",))
    made: list[Any] = []

    def fill(**given: Any) -> None:
        made.append(line.fill({name: value for name, value in given.items() if value not in (None, ())}))

    command = click.Command("toy", params=line.params(), callback=fill)
    command.main([*arguments], standalone_mode=False)
    return made[0]


def test_it_is_parsed_kept_in_the_identity_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "toy", Toy())
    common = ("--questions", "q", "--output", str(tmp_path), "--method", "toy", "--generator", "mock")
    options = parsed(*common, "--pauses", "1,3")
    assert options.values == {"pauses": [1, 3]}
    with closing(ResponseCache(tmp_path / "replies.sqlite")) as cache:
        plan = options.plan([], lambda _: MockEngine(lambda _: ""), None, cache, {})
    assert [setting.option_record for setting in plan.settings] == [{"pauses": 1}, {"pauses": 3}]
    assert len({setting.identity(None) for setting in plan.settings}) == 2
    systems = [System.make("toy", {"generator": "mock"}, setting.option_record) for setting in plan.settings]
    assert find_differing(systems) == {"pauses"}
    assert [system.describe(find_differing(systems)) for system in systems] == ["pauses=1", "pauses=3"]
