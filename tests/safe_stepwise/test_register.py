"""The command that makes the bare name work: what it writes, what it says, what it removes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from safe_stepwise import __version__, register
from safe_stepwise.errors import UserError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    evaluate = pytest.importorskip("evaluate")
    monkeypatch.setattr(evaluate.config, "HF_MODULES_CACHE", tmp_path / "modules")
    monkeypatch.syspath_prepend(str(tmp_path))  # `evaluate` adds its folder: put the path back
    monkeypatch.chdir(tmp_path)
    return tmp_path / "modules" / "evaluate_modules" / "metrics"


def test_the_built_module_is_that_of_the_space_folder(tmp_path: Path) -> None:
    build = [
        sys.executable,
        "setup.py",
        "-q",
        "egg_info",
        "--egg-base",
        str(tmp_path),
        "build_py",
        "-d",
        str(tmp_path),
    ]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    built = tmp_path / "safe_stepwise" / "metric" / "space" / "safe_stepwise.py.txt"
    assert built.read_text(encoding="utf-8") == register.source()
    assert (tmp_path / "safe_stepwise" / "metric" / "space.yaml").is_file()
    assert f'VERSION = "{__version__}"' in register.source()


def test_it_writes_one_copy_and_tells_it(modules: Path, capsys: pytest.CaptureFixture) -> None:
    register.main([])
    (copy,) = modules.rglob("safe_stepwise.py")
    assert copy.read_text(encoding="utf-8") == register.source()
    assert copy.parent.parent == modules / "evaluate-metric--safe_stepwise"
    assert len(copy.parent.name) == 64
    for folder in (modules.parent, modules, copy.parents[1], copy.parent):
        assert (folder / "__init__.py").is_file()
    assert str(copy) in capsys.readouterr().out
    register.main([])  # once more
    assert list(modules.rglob("safe_stepwise.py")) == [copy]


def test_it_takes_the_place_of_another_version(modules: Path) -> None:
    other = modules / "evaluate-metric--safe_stepwise" / ("0" * 64) / "safe_stepwise.py"
    other.parent.mkdir(parents=True)
    other.write_text("VERSION = '0.0.9'\n")
    later = time.time() + 1000
    os.utime(other, (later, later))
    copy = register.register()
    assert register.registered() == [copy]


def test_it_removes_its_copies_and_nothing_else(modules: Path) -> None:
    copy = register.register()
    neighbour = modules / "evaluate-metric--accuracy" / "accuracy.py"
    neighbour.parent.mkdir()
    neighbour.touch()
    register.main(["--remove"])
    assert not copy.exists()
    assert neighbour.is_file()
    assert register.remove() == 0


def test_mistakes_are_one_line(modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"see .*--help"):
        register.main(["--now"])
    modules.parent.parent.write_text("")  # a file in the place of the folder
    with pytest.raises(UserError, match=r"cannot be written .*set HF_MODULES_CACHE") as refused:
        register.main([])
    assert len(str(refused.value).splitlines()) == 1


def test_the_help_says_what_happens(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as ended:
        register.main(["--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    for truth in ("working directory", "on the Hub", "HF_MODULES_CACHE", "after an upgrade"):
        assert truth in told
