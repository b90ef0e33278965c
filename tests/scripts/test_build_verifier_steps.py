from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from safe_stepwise.errors import UserError
from scripts import build_verified, build_verifier_steps
from scripts.step_maker import known_maker
from tests.makers.plausible import PlausibleMaker

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("verified")
    for split, seed in (("train", "1"), ("validation", "2")):
        build_verified.main(
            [*("--benchmark", "synthetic", "--input", f"rows=40,seed={seed},noise=0.1"),
             *("--split", split, "--teacher", "annotations", "--output", str(output)),
             *("--workers", "1", "--evaluation-size", "3")]
        )  # fmt: skip
    return output


def arguments(verified: Path, output: Path, **changes: str) -> list[str]:
    options = {
        "verified": str(verified),
        "teacher": "annotations",
        "rows": "60",
        "output": str(output),
        "workers": "1",
        **changes,
    }
    return [part for name, value in options.items() for part in (f"--{name}", value)]


def test_it_builds_and_says_where(
    verified: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(build_verifier_steps, "known_maker", lambda *_: PlausibleMaker())
    build_verifier_steps.main(arguments(verified, tmp_path, questions="20", ideal="0.5"))
    said = capsys.readouterr().out
    row = next(line for line in said.splitlines() if line.startswith("synthetic"))
    assert row.split()[1:6] == ["60", "20", "30", "30", "0"]
    assert f'load_dataset("{tmp_path / "safe-verifier-steps"}")' in said
    assert str(tmp_path / "refused.jsonl") in said


def test_the_command_runs_with_the_annotations_maker(verified: Path, tmp_path: Path) -> None:
    pytest.importorskip("builders.step_making")
    done = subprocess.run(
        [sys.executable, "-m", "scripts.build_verifier_steps", *arguments(verified, tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "safe-verifier-steps" in done.stdout


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"benchmark": "musiqe"}, "did you mean musique?"),
        ({"benchmark": "hotpotqa"}, "holds no hotpotqa"),
        ({"rows": "0"}, "from 1 on"),
        ({"rows": "99999999"}, r"99,999,999 rows are wanted, but only"),
        ({"questions": "61"}, "61 questions: each needs a row"),
        ({"ideal": "2"}, "not a share from 0 to 1"),
        ({"test-share": "x"}, "not a share from 0 to 1"),
        ({"test-share": "0"}, "between 0 and 1"),
        ({"version": "1"}, "vMAJOR.MINOR.PATCH"),
        ({"version": "v0.2.0"}, r"is version v0\.1\.0"),
        ({"benchmark": "2wiki"}, "did you mean 2wikimultihopqa?"),
        ({"max-length": "5"}, "longer than --max-length 5"),
    ],
)
def test_mistakes_are_user_errors(
    verified: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, str],
    expected: str,
) -> None:
    monkeypatch.setattr(build_verifier_steps, "known_maker", lambda *_: PlausibleMaker())
    with pytest.raises(UserError, match=expected):
        build_verifier_steps.main(arguments(verified, tmp_path / "out", **changes))
    assert not (tmp_path / "out" / "safe-verifier-steps").exists()


def test_a_mistake_is_one_line_and_status_2(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.build_verifier_steps", *arguments(tmp_path, tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_a_teacher_that_is_not_known() -> None:
    with pytest.raises(UserError, match="annotations"):
        known_maker("annotation")


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        build_verifier_steps.main(["--help"])
    assert caught.value.code == 0
    assert "examples:" in capsys.readouterr().out
