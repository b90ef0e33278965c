from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset

from builders.steps.questions import open_verified
from builders.verified.teachers.choice import resolve_teacher
from safe_stepwise import prompts
from safe_stepwise.engines import client
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import STEPS_RECORD
from scripts import build_verified, build_verifier_steps, refine_verifier_steps
from tests.makers.plausible import PlausibleMaker
from tests.servers.openai_server import MockServer
from tests.servers.steps import Pair, Truth

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
    verified: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build_verifier_steps, "resolve_maker", lambda *_, **__: PlausibleMaker())
    build_verifier_steps.main(arguments(verified, tmp_path, questions="20", ideal="0.5"))
    said = capsys.readouterr().out
    row = next(line for line in said.splitlines() if line.startswith("synthetic"))
    assert row.split()[1:6] == ["60", "20", "30", "30", "0"]
    assert f'load_dataset("{tmp_path / "safe-verifier-steps"}")' in said
    assert str(tmp_path / "refused.jsonl") in said


def test_the_command_runs_with_the_annotations_maker(verified: Path, tmp_path: Path) -> None:
    pytest.importorskip("builders.steps.making")
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
        ({"benchmark": "musiqe"}, "holds no musiqe, only synthetic"),
        ({"benchmark": "hotpotqa"}, "holds no hotpotqa"),
        ({"rows": "0"}, "from 1 on"),
        ({"rows": "99999999", "pool": "5"}, r"99,999,999 rows are wanted, but only .*--pool N"),
        ({"rows": "9999", "questions": "20"}, r"20 questions with at most 8 rows each are too few for 9999 rows"),
        ({"questions": "61"}, "61 questions: each needs a row"),
        ({"ideal": "2"}, "not a share from 0 to 1"),
        ({"test-share": "x"}, "not a share from 0 to 1"),
        ({"test-share": "0"}, "between 0 and 1"),
        ({"version": "1"}, "vMAJOR.MINOR.PATCH"),
        ({"version": "v0.2.0"}, r"is version v0\.1\.0"),
        ({"benchmark": "2wiki"}, "holds no 2wiki, only synthetic"),
    ],
)
def test_mistakes_are_user_errors(
    verified: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], expected: str
) -> None:
    monkeypatch.setattr(build_verifier_steps, "resolve_maker", lambda *_, **__: PlausibleMaker())
    with pytest.raises(UserError, match=expected):
        build_verifier_steps.main(arguments(verified, tmp_path / "out", **changes))
    assert not (tmp_path / "out" / "safe-verifier-steps").exists()


def test_a_small_benchmark_gives_what_it_can(
    verified: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build_verifier_steps, "resolve_maker", lambda *_, **__: PlausibleMaker())
    build_verifier_steps.main(arguments(verified, tmp_path, rows="9999"))
    said = capsys.readouterr()
    (line,) = [text for text in said.err.splitlines() if "9,999" in text]
    (number,) = re.findall(
        r"rows were asked for, but only ([\d,]+) could be made with at most 8 rows a question", line
    )
    rows = load_dataset(str(tmp_path / "safe-verifier-steps"), "steps", cache_dir=str(tmp_path / "cache"))
    record = json.loads((tmp_path / "safe-verifier-steps" / STEPS_RECORD).read_bytes())
    assert record["composition"]["rows"] == int(number.replace(",", ""))
    assert sum(rows.num_rows.values()) + record["overlap"]["steps"] == record["composition"]["rows"]


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


def test_refined_rows_join_and_are_counted(verified: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refine_verifier_steps.main(
        f"--verified {verified} --generator symbolic:error_rate=0.3,seed=1 --rows 12 "
        f"--verifier symbolic:error_rate=0.3,seed=2 --teacher annotations "
        f"--cache {tmp_path / 'cache.sqlite'} --output {tmp_path / 'refined'}".split()
    )
    file = tmp_path / "refined" / "refined.jsonl"
    capsys.readouterr()
    build_verifier_steps.main(arguments(verified, tmp_path / "out", refined=str(file)))
    said = capsys.readouterr().out
    row = next(line for line in said.splitlines() if line.startswith("synthetic"))
    assert row.split()[1] == "60"
    assert row.split()[5] == "12"
    assert "refined rows: 12 of the 12 in refined.jsonl" in said
    with pytest.raises(UserError, match=r"no\.jsonl: cannot be read"):
        build_verifier_steps.main(arguments(verified, tmp_path / "o", refined="no.jsonl"))


def asked_of(verified: Path) -> tuple[Pair, ...]:
    opened = open_verified(verified, "v0.1.0")
    return tuple(pair.sample(0) for split in ("train", "validation") for pair in opened.questions("synthetic", split))


def test_a_model_is_asked_and_what_it_cost_is_said(
    verified: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(client, "TRIES", 1)
    cache = tmp_path / "cache.sqlite"
    options = arguments(verified, tmp_path / "out", teacher="", cache=str(cache))
    with MockServer(Truth(asked_of(verified)), fault_rate=0.1, faults=("500",)) as server:
        options[options.index("")] = server.spec
        build_verifier_steps.main([*options, "--in-flight", "3"])
    said = capsys.readouterr().out
    assert cache.exists()
    spent = said[said.index("The teacher's work in this run") :]
    for role in ("trajectory", "inject", "total"):
        assert any(line.startswith(role) for line in spent.splitlines())
    assert f"{server.faulted['500']:,} requests failed; run the same command again" in said
    with MockServer(Truth(asked_of(verified)), port=server.port) as again:
        build_verifier_steps.main(options)
    assert "requests failed" not in capsys.readouterr().out
    assert not set(again.asked) & set(server.answered)


def test_examples_are_shown_to_the_one_who_writes_errors(verified: Path, tmp_path: Path) -> None:
    sent: list[tuple[str, str]] = []
    truth = Truth(asked_of(verified))

    def model(body: Mapping[str, Any]) -> str:
        system, user = (message["content"] for message in body["messages"])
        sent.append((system, user))
        return truth(body)

    with MockServer(model) as server:
        options = arguments(verified, tmp_path / "out", teacher=server.spec)
        build_verifier_steps.main([*options, f"--cache={tmp_path / 'c'}", "--examples=all"])
    text = prompts.examples(["inject"])["inject"]
    asked = {"\nTarget step: " in user: system.endswith(text) for system, user in sent}
    assert asked == {True: True, False: False}
    rows = load_dataset(str(tmp_path / "out" / "safe-verifier-steps"), split="train", cache_dir=str(tmp_path / "hf"))
    assert all(", examples inject " in teacher for teacher in rows["teacher"])


def test_a_model_that_never_answers_is_status_2_and_its_work_is_kept(verified: Path, tmp_path: Path) -> None:
    options = arguments(verified, tmp_path / "out", cache=str(tmp_path / "c.sqlite"), pool="5")
    with MockServer(lambda _: "", status=400) as server:
        options[options.index("annotations")] = server.spec
        done = subprocess.run(
            [sys.executable, "-m", "scripts.build_verifier_steps", *options],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 2, done.stderr
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("error: "))
    assert "no step could be made of 10 questions" in line
    assert "HTTP 400: as you wish" in line
    assert "failed" in done.stdout
    assert list((tmp_path / "out" / ".work" / "verifier-steps" / "shards").iterdir())


def test_replies_of_which_none_can_be_read_are_quoted_with_the_likely_cause(verified: Path, tmp_path: Path) -> None:
    options = arguments(verified, tmp_path / "out", cache=str(tmp_path / "c.sqlite"), pool="3")
    with MockServer(lambda _: "Okay, so the user wants steps.\nThe first is ...") as server:
        options[options.index("annotations")] = server.spec
        with pytest.raises(UserError, match=r"no row could be made of its 6 .*most often \(6\) the reply") as caught:
            build_verifier_steps.main(options)
    assert "; the first reply begins 'Okay, so the user wants steps.' (" in str(caught.value)
    assert "; it seems to think aloud: serve a thinking model with its reasoning parser" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_server_that_is_not_there_is_a_mistake(verified: Path, tmp_path: Path) -> None:
    options = arguments(verified, tmp_path, teacher="openai:mock@http://127.0.0.1:1/v1")
    with pytest.raises(UserError, match="no server answers"):
        build_verifier_steps.main([*options, "--cache", str(tmp_path / "cache.sqlite")])


def test_a_teacher_that_is_not_known() -> None:
    with pytest.raises(UserError, match="annotations"):
        resolve_teacher("annotation")


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        build_verifier_steps.main(["--help"])
    assert caught.value.code == 0
    assert "examples:" in capsys.readouterr().out
