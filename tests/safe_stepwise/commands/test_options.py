"""Options made from a dataclass and what is written of it: one field, one line of YAML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from safe_stepwise.commands.command import Command
from safe_stepwise.commands.options import CommandLine, check_exclusive, copy_into, read_option_specs
from safe_stepwise.commands.values import Commas, Count, Name, Share
from safe_stepwise.errors import UserError

WORDS = """\
everyday:
  file FILE: ""
  --name NAME: "one of {known}"
  --input SOURCE: {field: sources, help: "may be repeated"}
more:
  --share X: "of all"
  --steps K[,K]: "to try"
  --flag: "tried with and without"
  --no-quiet: {field: inner.quiet, help: "say more"}
  --on-error: {field: keep, values: {stop: false, keep: true}, help: "what becomes of a bad row"}
  --kind: "of a row"
"""


@dataclass(frozen=True)
class Inner:
    quiet: bool = True
    level: int = 3


@dataclass(frozen=True, kw_only=True)
class Options:
    file: Path
    name: Annotated[str, Name(("hotpotqa", "musique"))]
    sources: Sequence[str] = ()
    share: Share = 0.5
    steps: Annotated[Sequence[int], Commas(1)] = ()
    flag: Sequence[bool] = ()
    inner: Inner = field(default_factory=Inner)
    keep: bool = False
    kind: Literal["sft", "kto"] = "sft"
    rows: Count = 9
    """No words are of it: it is no option."""


@pytest.fixture
def said(tmp_path: Path) -> Any:
    """What a command line comes to."""
    (tmp_path / "try.yaml").write_text(WORDS)
    made: list[Options] = []
    line = CommandLine(Options, read_option_specs(tmp_path / "try.yaml"), defaults={"share": 0.25})
    command = Command("try", made.append, line, "Try it.", "examples:\n  try\n\nall of it\n\nexit status: 0")

    def run(*arguments: str) -> Options:
        command(arguments)
        return made.pop()

    return run


def test_what_is_not_said_is_as_the_fields_have_it(said: Any) -> None:
    assert said("a.json", "--name", "musique") == Options(file=Path("a.json"), name="musique", share=0.25)


def test_each_kind_of_field_is_filled(said: Any) -> None:
    options = said(
        *("--name=hotpotqa", "--input", "a", "--input", "b", "--share", "1", "--steps", "4,2", "--steps", "8"),
        *("--flag", "--no-flag", "--no-quiet", "--on-error", "keep", "--kind", "kto", "a.json"),
    )
    assert (options.sources, options.share, options.steps) == (("a", "b"), 1.0, (2, 4, 8))
    assert (options.flag, options.inner, options.keep) == ((True, False), Inner(quiet=False), True)
    assert (options.kind, options.rows) == ("kto", 9)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("a.json --name muique", r"--name 'muique' is not known; did you mean musique\?"),
        ("a.json --name musique --share 2", "argument --share: '2' is not a share from 0 to 1"),
        ("a.json --name musique --steps 0", "argument --steps: '0' is not a list of numbers from 1 on"),
        ("a.json --name musique --kind dpo", r"argument --kind: invalid choice: 'dpo' \(choose from 'sft', 'kto'\)"),
        ("a.json --name musique --rows 3", "no such option '--rows'"),
        ("--name musique", "missing argument 'FILE'; see safe-stepwise try --help$"),
    ],
)
def test_a_mistake_is_one_line(said: Any, line: str, told: str) -> None:
    with pytest.raises(UserError, match=told) as caught:
        said(*line.split())
    assert "\n" not in str(caught.value)


def test_help_shows_the_everyday_options_and_help_all_the_rest(said: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shown = {}
    for option in ("--help", "--help-all"):
        with pytest.raises(SystemExit, match="0"):
            said(option)
        shown[option] = capsys.readouterr().out
    assert "--name NAME" in shown["--help"]
    assert "one of hotpotqa, musique" in shown["--help"]
    assert "--share" not in shown["--help"]
    assert "all of it" not in shown["--help"]
    assert "(default 0.25)" in shown["--help-all"]
    assert "all of it" in shown["--help-all"]
    for text in shown.values():
        assert "examples:" in text
        assert text.endswith("exit status: 0\n")


def test_one_of_several_is_enough() -> None:
    options = Options(file=Path("a"), name="musique", sources=("a",), keep=True)
    with pytest.raises(UserError, match="argument --keep: not allowed with argument --sources"):
        check_exclusive(options, "sources", "keep")
    with pytest.raises(UserError, match="one of the arguments --flag --steps is required"):
        check_exclusive(options, "flag", "steps", required=True)
    check_exclusive(options, "sources", "flag", required=True)


def test_a_plan_takes_the_options_of_its_names() -> None:
    options = Options(file=Path("a"), name="musique", rows=4)

    @dataclass(frozen=True)
    class Plan:
        name: str
        rows: int
        teacher: str

    assert copy_into(Plan, options, teacher="symbolic") == Plan("musique", 4, "symbolic")
