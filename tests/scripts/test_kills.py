"""Commands that are killed, that find links or a full disk, that meet another run."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from safe_stepwise.errors import UserError
from safe_stepwise.store import files
from safe_stepwise.store.names import DATASETS, LOCK, NOISE_LABELS, REPORT, VERIFIED
from scripts import build_verified, evaluate_stepwise, regenerate
from tests import kill_sweep, sizes
from tests.kill_sweep import COMMANDS, evaluation, listing, release, verified
from tests.memory.sitecustomize import PYTHONPATH

ROOT = Path(__file__).parents[2]
SAMPLE = {
    "build_verified": 4,
    "build_verifier_steps": 1,
    "build_paths": 4,
    "evaluate_stepwise": 4,
    "measure_faithfulness": 3,
    "evaluate_deliberation": 4,
    "regenerate": 1,
    "regenerate_paths": 2,
}


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("name", COMMANDS)
def test_killed_before_a_change_of_a_file_the_next_run_ends_in_the_same_files(name: str) -> None:
    """In a process of its own, as it forks; `tests.kill_sweep` has the kills at every change."""
    kills = sizes.size(SAMPLE[name], 1)
    command = [sys.executable, "-m", "tests.kill_sweep", name, "--sample", str(kills)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"killed before {kills}" in ran.stdout


def test_a_killed_worker_is_one_line_and_the_next_run_resumes(tmp_path: Path) -> None:
    options = [*verified(tmp_path, 1600, "train")[:-4], "--workers", "2", *("--output", "out")]
    process = subprocess.Popen(
        [sys.executable, "-m", "scripts.build_verified", *options],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": PYTHONPATH}, stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    shards = tmp_path / "out" / ".work" / "synthetic-train" / "shards"
    while not (workers := spawned(process.pid)) or not list(shards.glob("*.arrow")):
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(workers[0], signal.SIGKILL)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "Traceback" not in errors
    assert errors.replace("\r", "\n").splitlines()[-1] == (
        "error: a worker process was killed, most likely for want of memory; run the same command "
        "again, with fewer --workers: it resumes"
    )
    assert list(shards.glob("*.arrow"))
    build_verified.main([*options[:-1], str(tmp_path / "out")])
    assert (tmp_path / "out" / VERIFIED / "README.md").exists()
    assert [path.name for path in (tmp_path / "out").glob(".*")] == []


def spawned(parent: int) -> list[int]:
    children = psutil.Process(parent).children()
    return [c.pid for c in children if any("spawn_main" in part for part in c.cmdline())]


@pytest.fixture
def built(tmp_path: Path) -> Path:
    build_verified.main(verified(tmp_path, 40, "validation"))
    return tmp_path / "out"


@pytest.mark.parametrize("name", [VERIFIED, NOISE_LABELS, f"{VERIFIED}/data", ".work"])
def test_a_linked_dataset_is_refused_and_left_alone(built: Path, name: str) -> None:
    place, elsewhere = built / name, built.parent / "elsewhere"
    if place.exists():
        place.rename(elsewhere)
    else:
        elsewhere.mkdir()
    place.symlink_to(elsewhere)
    before = listing(built.parent)
    with pytest.raises(UserError, match=f"{name}: a link .*elsewhere.*remove it") as caught:
        build_verified.main(verified(built.parent, 24, "validation"))
    assert "\n" not in str(caught.value)
    assert listing(built.parent) == before
    assert place.is_symlink()


def test_links_in_an_evaluation_are_refused(built: Path) -> None:
    options, mine = evaluation(built.parent, 2), built.parent / "mine"
    mine.write_text("mine")
    for name in (".trajectories.jsonl", "results.json", "report", "report/cost.md"):
        link = built.parent / "results" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(mine)
        with pytest.raises(UserError, match=f"{name}: a link .*mine"):
            evaluate_stepwise.main(options)
        link.unlink()
    assert mine.read_text() == "mine"
    evaluate_stepwise.main(options)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a release, for looking at."""
    folder = tmp_path_factory.mktemp("made")
    regenerate.main(release(folder))
    return folder / "release"


@pytest.fixture
def parts() -> Iterator[list[str]]:
    """What a small release is made of, without what takes long."""
    whole = kill_sweep.MANIFEST
    kill_sweep.MANIFEST = whole.partition("verifier_steps")[0]
    yield []
    kill_sweep.MANIFEST = whole


def test_a_release_holds_nothing_hidden(made: Path) -> None:
    names = [part for path in listing(made) for part in path.split("/")]
    assert [name for name in names if name.startswith(".")] == []
    assert "." + REPORT not in (made / LOCK).read_text()


def test_a_release_of_leftovers_is_made_without_them(tmp_path: Path, parts: list[str]) -> None:
    options, output = release(tmp_path), tmp_path / "release"
    for left in ("", "report", "report/deep", "space", DATASETS):
        (output / left).mkdir(parents=True, exist_ok=True)
        (output / left / ".comparison.md.half").write_text("half")
    (output / DATASETS / f".{VERIFIED}.old").mkdir()
    regenerate.main(options)
    assert not [name for name in listing(output) if "/." in f"/{name}"]


@pytest.mark.parametrize("name", [".DS_Store", "a/.hidden", "a/.git/config"])
def test_a_hidden_file_of_somebody_is_refused_and_left_alone(tmp_path: Path, parts: list[str], name: str) -> None:
    file = tmp_path / "release" / REPORT / name
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    with pytest.raises(UserError, match=r"/\.\w+: what is hidden is no part of a release; remove"):
        regenerate.main(release(tmp_path))
    assert file.read_text() == "mine"
    assert not (tmp_path / "release" / DATASETS).exists()  # before any work


def test_two_releases_at_once_are_refused(tmp_path: Path, parts: list[str]) -> None:
    options = release(tmp_path)
    with (
        files.lock_folder(tmp_path / "release"),
        pytest.raises(UserError, match="another run is writing here; wait for it"),
    ):
        regenerate.main(options)
    assert list((tmp_path / "release").iterdir()) == []


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("failing", [1, 12, -2, -1])
def test_a_full_disk_is_one_line_and_the_release_goes_on(
    tmp_path: Path, parts: list[str], monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    calls, full = 0, 0

    def sync(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls == full:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", sync)
    (tmp_path / "clean").mkdir()
    regenerate.main(release(tmp_path / "clean"))
    calls, full = 0, failing if failing > 0 else calls + 1 + failing
    with pytest.raises(UserError, match=r"[Nn]o space left") as caught:
        regenerate.main(release(tmp_path))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "release" / LOCK).exists()
    full = 0
    regenerate.main(release(tmp_path))
    assert listing(tmp_path / "release") == listing(tmp_path / "clean" / "release")
