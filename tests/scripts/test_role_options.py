"""Options by role: what they are made of, and what is said of one that can't be meant."""

from __future__ import annotations

import pytest

from safe_stepwise.commands.command import Command
from safe_stepwise.commands.options import CommandLine, read_option_specs
from safe_stepwise.engines.base import AS_PROMPTED, Allowance
from safe_stepwise.errors import UserError
from scripts.cli import HELP, ModelOptions, roles_of

ROLES = ("extract", "path")


def parsed(*arguments: str) -> Allowance:
    made: list[ModelOptions] = []
    line = CommandLine(ModelOptions, read_option_specs(HELP / "shared.yaml"), ROLES)
    Command("try", made.append, line, "", "notes")(arguments)
    return made[0].allowance


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), AS_PROMPTED),
        (("--max-tokens", "path=4096"), Allowance.by_role({"path": 4096})),
        (("--max-tokens=7",), Allowance.by_role({"extract": 7, "path": 7})),
        (("--max-tokens=7", "--max-tokens=path=9"), Allowance.by_role({"extract": 7, "path": 9})),
        (("--max-tokens=path=9", "--max-tokens=7"), Allowance.by_role({"extract": 7, "path": 7})),
        (
            ("--reasoning-effort", "low", "--reasoning-effort", "path=high"),
            Allowance.by_role({}, {"extract": "low", "path": "high"}),
        ),
        (
            ("--reasoning-effort=path=low", "--max-tokens=extract=5"),
            Allowance.by_role({"extract": 5}, {"path": "low"}),
        ),
    ],
)
def test_what_is_said_of_a_role_is_its_own(arguments: tuple[str, ...], expected: Allowance) -> None:
    assert parsed(*arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--max-tokens", "pth=4096"), r"--max-tokens 'pth' is not known; did you mean path\?"),
        (("--max-tokens", "judge=4096"), "choose from extract, path$"),
        (("--max-tokens", "path=many"), "argument --max-tokens: 'many' is not a whole number"),
        (("--max-tokens", "path=0"), "'0' is not a whole number from 1 on"),
        (("--max-tokens", "=5"), "--max-tokens '' is not known"),
        (("--max-tokens", "path="), "'' is not a whole number"),
        (("--reasoning-effort", "path=hard"), "--reasoning-effort 'hard' is not known"),
        (("--reasoning-effort", "path"), "choose from low, medium, high$"),
    ],
)
def test_what_cannot_be_meant_is_one_line(arguments: tuple[str, ...], expected: str) -> None:
    with pytest.raises(UserError, match=expected) as caught:
        parsed(*arguments)
    assert "\n" not in str(caught.value)


def test_help_has_the_limit_of_each_role(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--help-all")
    said = " ".join(capsys.readouterr().out.split())
    assert "for one of extract (4,096), path (1,024); without ROLE= for all" in said


def test_roles_are_those_of_prompts_each_once() -> None:
    names = ("loop/generate", "loop/final_answer", "loop/generate", "judge/equivalence")
    assert roles_of(names) == ("generate", "final_answer", "judge")
