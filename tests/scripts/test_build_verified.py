from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

from builders.synthetic import generate, parse_spec, to_row
from builders.verified.build import build
from builders.verified.collect import Build
from builders.verified.teachers.annotations import AnnotationsTeacher
from cards.datasets import CARDS
from safe_stepwise.errors import UserError
from scripts import build_verified, demo, regenerate

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "scripts.build_verified"]


def arguments(output: Path, **changes: str) -> list[str]:
    options = {
        "benchmark": "synthetic",
        "input": "rows=40,seed=1,noise=0.3",
        "split": "train",
        "teacher": "annotations",
        "output": str(output),
        "workers": "1",
        **changes,
    }
    return [part for name, value in options.items() for part in (f"--{name}", value)]


def shell(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *command], cwd=ROOT, capture_output=True, text=True, check=False)


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def test_the_command_builds_and_says_where(tmp_path: Path) -> None:
    done = shell(*arguments(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert "read" in done.stdout
    assert str(tmp_path / "out" / "safe-noise-labels") in done.stdout
    assert 'load_dataset("' in done.stdout


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"benchmark": "hotpot"}, "did you mean hotpotqa?"),
        ({"benchmark": "2wiki"}, "did you mean 2wikimultihopqa?"),
        ({"teacher": "annotation"}, "or use annotations, or published:FILE"),
        ({"teacher": "gpt-4"}, "or use annotations, or published:FILE, which need no model"),
        ({"price-prompt": "-1"}, "from 0 on"),
        ({"price-completion": "nan"}, "from 0 on"),
        ({"teacher": "opena:m@http://x/v1"}, "did you mean openai:m@http://x/v1?"),
        ({"split": "test"}, "train and validation"),
        ({"version": "1.0"}, "vMAJOR.MINOR.PATCH"),
        ({"workers": "0"}, "from 1 on"),
        ({"limit": "-3"}, "from 1 on"),
        ({"ranks": "0"}, "from 1 on"),
        ({"engine": "datatrove"}, "did you mean datatrove-local?"),
        ({"engine": "nonsense"}, "choose from local, datatrove-local, slurm, ray"),
        ({"on-error": "ignore"}, "--help"),
        ({"benchmark": "musique", "input": "no/such/file.jsonl"}, "no/such/file.jsonl"),
        ({"input": "rows=abc"}, "rows"),
        ({"min-confidence": "2"}, "--min-confidence: '2' is not a share from 0 to 1"),
        ({"min-confidence": "nan"}, "'nan' is not a share from 0 to 1"),
        ({"min-confidence": "0.5", "teacher": "symbolic"}, "labels have no confidence"),
        ({"published": "no/such/labels.jsonl"}, "no/such/labels.jsonl: cannot be read"),
    ],
)
def test_mistakes_are_user_errors(tmp_path: Path, changes: dict[str, str], expected: str) -> None:
    with pytest.raises(UserError) as caught:
        build_verified.main(arguments(tmp_path / "out", **changes))
    assert expected in str(caught.value)
    assert not (tmp_path / "out" / "safe-verified-multihop").exists()


def test_annotations_are_no_advice_for_a_spec_that_names_its_kind(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        build_verified.main(arguments(tmp_path / "out", teacher="symbolic:error_rate=2"))
    assert "annotations" not in str(caught.value)


def test_rows_of_another_benchmark_are_not_to_be_mended(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"_id": "1", "level": "hard"}\n', encoding="utf-8")
    with pytest.raises(UserError, match=r"try --benchmark hotpotqa$"):
        build_verified.main(arguments(tmp_path / "out", benchmark="musique", input=str(file)))


def test_the_size_of_the_evaluation_sample_is_an_option(tmp_path: Path) -> None:
    options = arguments(tmp_path / "out", split="validation", **{"evaluation-size": "7"})
    build_verified.main(options)
    folder = tmp_path / "out" / "safe-verified-multihop"
    record = json.loads((folder / "statistics" / "synthetic-validation.json").read_bytes())
    assert (record["evaluation"]["size"], record["evaluation"]["rows"]) == (7, 7)
    with pytest.raises(UserError, match="from 1 on"):
        build_verified.main(arguments(tmp_path / "no", **{"evaluation-size": "0"}))


def test_a_mistake_is_one_line_and_status_2(tmp_path: Path) -> None:
    file = tmp_path / "cut.json"
    file.write_text('[{"_id": "h1", "question": "Where', encoding="utf-8")
    done = shell(*arguments(tmp_path / "out", benchmark="hotpotqa", input=str(file)))
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "cut.json" in done.stderr


def test_a_fault_of_ours_is_status_1(tmp_path: Path) -> None:
    code = (
        "import builders.verified.chunks, runpy, sys\n"
        "async def verify(question, teacher): raise ZeroDivisionError\n"
        "builders.verified.chunks.verify = verify\n"
        "sys.argv[1:] = sys.argv[2:]\n"
        "runpy.run_module('scripts.build_verified', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "build_verified", *arguments(tmp_path / "out")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert "synthetic-train-1-0" in done.stderr


@pytest.mark.parametrize("command", [build_verified, demo, regenerate])
def test_help_teaches(command: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(["--help"])
    assert caught.value.code == 0
    assert "example" in capsys.readouterr().out


def test_without_the_environment_it_is_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-m", "scripts.build_verified", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "make demo" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_split_without_a_verified_row_is_said_to_be_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build_verified.main(arguments(tmp_path / "out", input="rows=3,seed=1,noise=1"))
    assert "train is in synthetic_labeled, but not in the config synthetic" in (capsys.readouterr().out)


def test_rejects_are_kept_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rows.jsonl"
    (row,) = (to_row(*row) for row in generate(parse_spec("rows=1,seed=1"), split="train"))
    file.write_text(f'{{"id": 1}}\n{json.dumps(row)}\nnonsense\n', encoding="utf-8")
    options = arguments(tmp_path / "out", input=str(file))
    build_verified.main([*options, "--on-error", "keep"])
    assert "rejects.jsonl" in capsys.readouterr().out
    lines = (tmp_path / "out" / "rejects.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["location"] for line in lines] == ["rows.jsonl:1", "rows.jsonl:3"]


def test_a_source_with_no_row_that_can_be_read_is_a_mistake(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"id": 1, "paragraphs": []}\nnonsense\n', encoding="utf-8")
    options = arguments(tmp_path / "out", benchmark="hotpotqa", input=str(file))
    with pytest.raises(UserError, match=r"none of its 2 rows .* try --benchmark musique"):
        build_verified.main([*options, "--on-error", "keep"])
    assert not (tmp_path / "out" / "safe-verified-multihop").exists()


def start_and_wait_for_shards(output: Path, spec: str, number: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [*COMMAND, *arguments(output, input=spec, workers="2")],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    shards = output / ".work" / "synthetic-train" / "shards"
    while len(list(shards.glob("*.arrow"))) < number:
        assert process.poll() is None, "the build ended before it could be stopped"
        time.sleep(0.01)
    return process


def test_killed_at_once_it_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    spec = "rows=1600,seed=9,noise=0.2"
    process = start_and_wait_for_shards(tmp_path / "out", spec, 2)
    process.kill()
    process.wait()
    wait_for_the_session_to_end(process.pid)
    killed = Build("synthetic", spec, "train", AnnotationsTeacher, output=tmp_path / "out")
    assert not (killed.output / "safe-verified-multihop").exists()
    finished = {p: p.stat().st_mtime_ns for p in (killed.work / "shards").glob("*.arrow")}
    assert 2 <= len(finished) < 8
    build(Build(**{**as_dict(killed), "workers": 2, "keep_work": True}), CARDS)
    assert all(p.stat().st_mtime_ns == before for p, before in finished.items())
    clean = Build(**{**as_dict(killed), "output": tmp_path / "clean", "keep_work": True})
    build(clean, CARDS)
    for name in ("safe-verified-multihop", "safe-noise-labels"):
        assert contents(killed.output / name) == contents(clean.output / name)


def interrupt_from_the_keyboard(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGINT)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("stop", [interrupt_from_the_keyboard, subprocess.Popen.terminate])
def test_interrupted_it_ends_in_order(tmp_path: Path, stop: Callable[[subprocess.Popen[bytes]], None]) -> None:
    process = start_and_wait_for_shards(tmp_path / "out", "rows=20000,seed=9", 1)
    stop(process)
    assert process.wait(timeout=120) == 130
    wait_for_the_session_to_end(process.pid)
    shards = tmp_path / "out" / ".work" / "synthetic-train" / "shards"
    assert list(shards.glob("*.arrow"))
    assert not list(shards.glob(".*"))


def as_dict(plan: Build) -> dict[str, object]:
    return {field.name: getattr(plan, field.name) for field in fields(plan)}


def wait_for_the_session_to_end(session: int) -> None:
    """Workers whose parent was killed have to go by themselves, and not too late for the suite."""
    with suppress(ProcessLookupError):
        while True:
            os.killpg(session, 0)
            time.sleep(0.05)
