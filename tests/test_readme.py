"""The README's snippets run, and its commands have the options they show."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import build_verified, build_verifier_steps

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SNIPPETS = [s for s in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "[...]" not in s]
COMMANDS = re.findall(
    r"python -m ((?:scripts|safe_stepwise)\.\w+)([^\n#]*(?:\\\n[^\n#]*)*)",
    "\n".join(re.findall(r"```bash\n(.*?)```", README, re.DOTALL)),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a reader has built what the README builds, of made-up questions."""
    place = tmp_path_factory.mktemp("readme")
    verified, steps = str(place / "build" / "verified"), str(place / "build" / "steps")
    for split, seed in (("train", 5), ("validation", 6)):
        build_verified.main(
            [
                *("--benchmark", "synthetic", "--input", f"rows=120,seed={seed},noise=0.1"),
                *("--split", split, "--teacher", "annotations", "--output", verified),
                *("--evaluation-size", "20", "--workers", "1"),
            ]
        )
    build_verifier_steps.main(
        [
            *("--verified", verified, "--teacher", "annotations", "--rows", "60"),
            *("--output", steps, "--workers", "1"),
        ]
    )
    return place


def test_there_are_snippets_and_commands() -> None:
    assert len(SNIPPETS) >= 3
    assert len(COMMANDS) >= 10


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_a_snippet_runs(snippet: str, place: Path) -> None:
    home = place / "home"
    home.mkdir(exist_ok=True)
    environment = os.environ | {
        "HOME": str(home),
        "HF_HOME": str(home / "hf"),
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": str(ROOT),
    }
    if "evaluate" in snippet:
        register = [sys.executable, "-m", "safe_stepwise.register"]
        subprocess.run(register, cwd=place, env=environment, check=True)
    code = snippet.replace('"musique', '"synthetic')
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("module", "rest"), COMMANDS, ids=[f"{m}" for m, _ in COMMANDS])
def test_a_command_has_the_options_it_is_shown_with(
    module: str, rest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(module).main(["--help"])
    assert ended.value.code == 0
    known = set(re.findall(r"--[\w.-]+", capsys.readouterr().out))
    assert set(re.findall(r"(?<!\S)--[a-z][\w.-]*", rest)) <= known
