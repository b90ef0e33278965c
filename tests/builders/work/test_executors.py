from __future__ import annotations

import errno
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from builders.verified.build import build
from builders.verified.collect import Build
from builders.verified.teachers import Proposal, TeacherError
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.work import executors
from builders.work.executors import Submitted
from builders.work.plans import Slurm
from builders.work.ranks import RankError
from cards import datasets
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.records import Question
from safe_stepwise.store.names import NOISE_LABELS, VERIFIED

CARDS = {VERIFIED: datasets.verified_multihop, NOISE_LABELS: datasets.noise_labels}
ROOT = Path(__file__).parents[3]
SPEC = "rows=500,seed=5,noise=0.3"
"""Three chunks, the last of them short."""


@pytest.fixture
def plan(tmp_path: Path) -> Build:
    return Build("synthetic", SPEC, "validation", AnnotationsTeacher, output=tmp_path / "out")


@pytest.fixture
def hotpot(plan: Build, tmp_path: Path) -> Build:
    """Four chunks, with a row without an answer in the second and an id twice in the third."""
    rows = [hotpot_row(number) for number in range(1, 651)]
    del rows[219]["answer"]
    rows[440]["_id"] = "h7"
    file = tmp_path / "hotpot.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return replace(plan, benchmark="hotpotqa", source=str(file), split="train", keep_rejects=True)


def hotpot_row(number: int) -> dict[str, Any]:
    return {
        "_id": f"h{number}",
        "question": f"In which country is town {number}?",
        "answer": "Marn",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": [["Vel", 0], ["Oru", 1]],
        "context": [
            ["Vel", ["The Vel is a river.", " It crosses Oru."]],
            ["Oru", ["Oru is a town.", " It lies in Marn."]],
        ],
    }


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def shards(plan: Build) -> dict[str, int]:
    """Finished shards of a build, and when each was written."""
    return {file.name: file.stat().st_mtime_ns for file in (plan.work / "shards").glob("[!.]*")}


def on(plan: Build, engine: str, ranks: int, workers: int, folder: Path) -> dict[str, bytes]:
    """What the build makes in ``folder`` on that engine."""
    build(replace(plan, engine=engine, ranks=ranks, workers=workers, output=folder), CARDS)
    return contents(folder)


# The same bytes


@pytest.mark.parametrize("source", ["plan", "hotpot"])
def test_same_bytes_for_any_engine_ranks_and_workers(
    source: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    ours: Build = request.getfixturevalue(source)
    expected = on(ours, "local", 1, 1, tmp_path / "local")
    assert ("rejects.jsonl" in expected) == (source == "hotpot")
    assert on(ours, "local", 1, 3, tmp_path / "local-3") == expected
    for ranks, workers in ((1, 1), (2, 2), (7, 2)):
        made = on(ours, "datatrove-local", ranks, workers, tmp_path / f"datatrove-{ranks}")
        assert made == expected


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")
@pytest.mark.parametrize("source", ["plan", "hotpot"])
def test_same_bytes_with_ray(source: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    ours: Build = request.getfixturevalue(source)
    expected = on(ours, "local", 1, 1, tmp_path / "local")
    assert on(ours, "ray", 3, 2, tmp_path / "ray") == expected


def test_nothing_is_started_when_nothing_is_owed(plan: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    build(replace(plan, keep_work=True), CARDS)
    monkeypatch.setattr(executors, "run_ranks", None)
    build(replace(plan, engine="datatrove-local", keep_work=True), CARDS)
    assert not (plan.work / "ranks").exists()


def test_relative_paths_are_meant_from_here(hotpot: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = on(hotpot, "local", 1, 1, tmp_path / "local")
    monkeypatch.chdir(tmp_path)
    relative = replace(hotpot, source="hotpot.jsonl")
    assert on(relative, "datatrove-local", 2, 2, Path("relative")) == expected


# What goes wrong in a rank


@dataclass(frozen=True)
class Troubled(AnnotationsTeacher):
    """Does what the file ``trouble`` says when it comes to question h250, in the second chunk."""

    folder: Path

    name = identity = "troubled"

    def __call__(self) -> Troubled:
        return self

    async def propose(self, question: Question, graph: KnowledgeGraph) -> Proposal:
        trouble = self.folder / "trouble"
        if question.id == "h250" and trouble.exists():
            kind = trouble.read_text()
            if kind == "fault":
                raise ZeroDivisionError("a fault of ours")
            if kind == "full":
                raise OSError(errno.ENOSPC, "No space left on device", "a/file")
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().propose(question, graph)


@dataclass(frozen=True)
class Unlucky(AnnotationsTeacher):
    """Every request fails; ``asked`` has a line for each."""

    folder: Path

    name = identity = "unlucky"
    replies = {"failed": 1}  # noqa: RUF012 (as in the class it stands in for)

    def __call__(self) -> Unlucky:
        return self

    async def propose(self, question: Question, graph: KnowledgeGraph) -> Proposal:
        with (self.folder / "asked").open("a") as file:
            file.write(f"{question.id}\n")
        raise TeacherError("no answer")


@pytest.fixture
def troubled(hotpot: Build, tmp_path: Path) -> Build:
    return replace(hotpot, teacher=Troubled(tmp_path), engine="datatrove-local", ranks=3, workers=2)


def still_running() -> list[list[str]]:
    """What this process has started, but for the resource tracker that any pool leaves it with."""
    lines = [child.cmdline() for child in psutil.Process().children(recursive=True)]
    return [line for line in lines if "resource_tracker" not in " ".join(line)]


def expect(caught: pytest.ExceptionInfo[Exception], kind: str) -> None:
    text = str(caught.value)
    if kind == "fault":
        assert isinstance(caught.value, RankError)
        assert "ZeroDivisionError: a fault of ours" in text
        assert "while verifying question 'h250'" in text
        return
    assert isinstance(caught.value, UserError)
    assert "\n" not in text
    assert {"full": "no space left", "killed": "was killed"}[kind] in text


@pytest.mark.parametrize("kind", ["fault", "full", "killed"])
def test_trouble_in_a_rank_is_told_and_only_the_owed_is_made(
    troubled: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    if kind == "killed":  # the others report, however long a busy machine takes for it
        monkeypatch.setattr(executors, "PATIENCE", 1.0)
    (tmp_path / "trouble").write_text(kind)
    with pytest.raises((UserError, RankError)) as caught:
        build(troubled, CARDS)
    expect(caught, kind)
    assert not (troubled.output / VERIFIED).exists()
    assert still_running() == []
    before = shards(troubled)
    assert len(before) < 4
    assert not any(name.startswith("000000200-") for name in before)
    (tmp_path / "trouble").unlink()
    build(replace(troubled, keep_work=True), CARDS)
    after = shards(troubled)
    assert len(after) == 4
    assert {name: after[name] for name in before} == before
    build(troubled, CARDS)
    clean = on(troubled, "local", 1, 1, tmp_path / "clean")
    assert contents(troubled.output) == clean


def test_a_row_that_cannot_be_read_stops_every_engine_alike(hotpot: Build, tmp_path: Path) -> None:
    messages = set()
    for engine in ("local", "datatrove-local"):
        strict = replace(hotpot, keep_rejects=False, engine=engine, output=tmp_path / engine)
        for _ in range(2):  # at once when it is known already
            with pytest.raises(UserError, match=r"hotpot\.jsonl:220 .*h220") as caught:
                build(strict, CARDS)
            messages.add(str(caught.value))
    assert len(messages) == 1
    assert len(list((strict.work / "ranks").iterdir())) == 1


def test_a_failed_reply_is_asked_for_once_a_run(hotpot: Build, tmp_path: Path) -> None:
    ours = replace(hotpot, limit=210, teacher=Unlucky(tmp_path), ranks=2, keep_work=True)
    nothing = "none of the 210 rows could be judged"
    with pytest.raises(UserError, match=nothing):
        build(replace(ours, engine="datatrove-local"), CARDS)
    asked = (tmp_path / "asked").read_text().split()
    assert len(asked) == len(set(asked)) == 210
    with pytest.raises(UserError, match=nothing):
        build(replace(ours, engine="datatrove-local"), CARDS)
    assert len((tmp_path / "asked").read_text().split()) == 420


def test_a_damaged_source_is_found_before_any_work(plan: Build, tmp_path: Path) -> None:
    file = tmp_path / "cut.json"
    file.write_text(json.dumps([hotpot_row(1)])[:-20], encoding="utf-8")
    cut = replace(plan, benchmark="hotpotqa", source=str(file), engine="datatrove-local")
    with pytest.raises(UserError, match=r"cut\.json"):
        build(cut, CARDS)
    assert not (plan.work / "ranks").exists()


@pytest.mark.parametrize(("engine", "module"), [("datatrove-local", "datatrove"), ("ray", "ray")])
def test_a_missing_package_is_named(plan: Build, monkeypatch: pytest.MonkeyPatch, engine: str, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match=rf"needs {module}: pip install -e '\.\[distri"):
        build(replace(plan, engine=engine), CARDS)


# The command is killed or interrupted


COMMAND = [
    *(sys.executable, "-m", "scripts.build_verified", "--benchmark", "synthetic"),
    *("--split", "train", "--teacher", "annotations", "--engine", "datatrove-local"),
    *("--workers", "2", "--ranks", "5"),
]


@pytest.fixture
def long(plan: Build) -> Build:
    return replace(plan, source="rows=5000,seed=9,noise=0.2", split="train")


def start(plan: Build) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """The command, when it has two shards, with all the processes it has started."""
    options = ["--input", plan.source, "--output", str(plan.output)]
    process = subprocess.Popen(
        [*COMMAND, *options],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while len(shards(plan)) < 2:
        assert process.poll() is None, "the build ended before it could be stopped"
        time.sleep(0.01)
    return process, psutil.Process(process.pid).children(recursive=True)


def test_killed_it_leaves_nothing_running_and_resumes(long: Build, tmp_path: Path) -> None:
    process, family = start(long)
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(family, timeout=120)
    assert len(family) >= 4
    assert alive == []
    assert not (long.output / VERIFIED).exists()
    before = shards(long)
    assert 2 <= len(before) < 25
    again = replace(long, engine="datatrove-local", ranks=4, workers=2, keep_work=True)
    build(again, CARDS)
    after = shards(long)
    assert len(after) == 25
    assert {name: after[name] for name in before} == before
    build(long, CARDS)
    assert contents(long.output) == on(long, "local", 1, 2, tmp_path / "clean")


def from_the_keyboard(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGINT)


@pytest.mark.parametrize("stop", [from_the_keyboard, subprocess.Popen.terminate])
def test_interrupted_it_finishes_chunks_and_says_one_line(
    long: Build, stop: Callable[[subprocess.Popen[str]], None]
) -> None:
    process, family = start(long)
    stop(process)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert errors.strip().splitlines()[-1] == "interrupted; the same command resumes"
    assert "Traceback" not in errors
    _, alive = psutil.wait_procs(family, timeout=120)
    assert alive == []
    assert 2 <= len(shards(long)) < 25
    assert not list((long.work / "shards").glob(".*"))


# Slurm


FAKES = {
    # Runs the array as one job in the background, once the file `hold` is gone.
    "sbatch": """
        cp "${@: -1}" "$FAKE_SLURM/script"
        last=$(sed -n 's/^#SBATCH --array=0-\\([0-9]*\\).*/\\1/p' "$FAKE_SLURM/script")
        echo 71 >> "$FAKE_SLURM/submitted"
        touch "$FAKE_SLURM/queued"
        (
            while [ -e "$FAKE_SLURM/hold" ]; do sleep 0.05; done
            cd /
            for rank in $(seq 0 "$last"); do
                SLURM_ARRAY_TASK_ID=$rank SLURM_NODELIST=here bash "$FAKE_SLURM/script"
            done
            rm "$FAKE_SLURM/queued"
        ) > "$FAKE_SLURM/log" 2>&1 &
        echo "Submitted batch job 71"
    """,
    "squeue": """
        if [ -e "$FAKE_SLURM/queued" ]; then echo "71 debug safe R 0:01 1 here"; exit; fi
        echo "slurm_load_jobs error: Invalid job id specified" >&2
        exit 1
    """,
    "srun": 'shift 3; exec "$@"',
    "scontrol": "echo here",
}


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the state of a made-up Slurm, whose commands are first on the path."""
    folder = tmp_path / "slurm"
    folder.mkdir()
    for name, script in FAKES.items():
        (folder / name).write_text(f"#!/bin/bash\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("FAKE_SLURM", str(folder))
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    yield folder
    (folder / "hold").unlink(missing_ok=True)
    wait_for_the_job(folder)


def wait_for_the_job(cluster: Path) -> None:
    while (cluster / "queued").exists():
        time.sleep(0.05)


def test_slurm_submits_waits_and_gathers(hotpot: Build, cluster: Path, tmp_path: Path) -> None:
    ours = replace(hotpot, engine="slurm", ranks=3, slurm=Slurm("debug", "00:10:00"))
    (cluster / "hold").touch()
    with pytest.raises(Submitted, match=r"job 71: hotpotqa train, 4 chunks in 3 ranks"):
        build(ours, CARDS)
    script = (cluster / "script").read_text()
    assert "#SBATCH --partition=debug\n" in script
    assert "#SBATCH --time=00:10:00\n" in script
    with pytest.raises(UserError, match=r"job 71 still has 4 chunks .*squeue -j 71"):
        build(ours, CARDS)
    (cluster / "hold").unlink()
    wait_for_the_job(cluster)
    assert len(shards(ours)) == 4, (cluster / "log").read_text()
    build(ours, CARDS)
    assert (cluster / "submitted").read_text().split() == ["71"]
    assert contents(ours.output) == on(hotpot, "local", 1, 1, tmp_path / "clean")


def test_what_a_slurm_job_left_is_told_then_submitted(troubled: Build, cluster: Path, tmp_path: Path) -> None:
    ours = replace(troubled, engine="slurm", slurm=Slurm("debug"))
    (tmp_path / "trouble").write_text("fault")
    with pytest.raises(Submitted):
        build(ours, CARDS)
    wait_for_the_job(cluster)
    with pytest.raises(RankError) as caught:
        build(ours, CARDS)
    expect(caught, "fault")
    (tmp_path / "trouble").write_text("killed")
    with pytest.raises(Submitted):
        build(ours, CARDS)
    wait_for_the_job(cluster)
    before = shards(ours)
    owed = 4 - len(before)
    with pytest.raises(UserError, match=rf"job 71 has ended with {owed} chunks owed"):
        build(ours, CARDS)
    (tmp_path / "trouble").unlink()
    with pytest.raises(Submitted, match=f"{owed} chunks"):
        build(ours, CARDS)
    wait_for_the_job(cluster)
    assert {name: shards(ours)[name] for name in before} == before
    build(ours, CARDS)
    assert contents(ours.output) == on(troubled, "local", 1, 1, tmp_path / "clean")


@pytest.mark.parametrize(
    ("slurm", "broken", "expected"),
    [
        (Slurm("debug"), "rm sbatch", "no sbatch here"),
        (Slurm(), "", "--slurm-partition"),
        (Slurm("debug"), "echo 'exit 1' > sbatch", "sbatch did not take the job"),
    ],
)
def test_slurm_without_what_it_needs(
    plan: Build, cluster: Path, monkeypatch: pytest.MonkeyPatch, slurm: Slurm, broken: str, expected: str
) -> None:
    monkeypatch.delenv("SBATCH_PARTITION", raising=False)
    subprocess.run(broken, shell=True, cwd=cluster, check=True)
    with pytest.raises(UserError, match=re.escape(expected)):
        build(replace(plan, engine="slurm", slurm=slurm), CARDS)
    assert not (cluster / "submitted").exists()
