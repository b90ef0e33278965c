"""Commands against servers that mean harm or are broken: no key in any file, nothing lost."""

from __future__ import annotations

import json
import os
import re
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from builders.work.shards import read_shard
from safe_stepwise.engines import client
from safe_stepwise.errors import UserError
from scripts import build_verified, build_verifier_steps, evaluate_stepwise
from tests.scripts import test_evaluate_stepwise as evaluating
from tests.scripts import test_teacher_runs as verifying
from tests.servers.openai_server import EVERY_FAULT, MockServer
from tests.servers.stepper import Stepper
from tests.servers.steps import careless
from tests.servers.truth import Truth

ROOT = Path(__file__).parents[2]
KEY = "Zq98w7aB3xY7-aB3xY7_aB3xY7"
"""Of no known form, so that it is found by its value alone."""


@pytest.fixture(autouse=True)
def key_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(client, "FIRST_WAIT_S", 0.001)


def told(folder: Path) -> Iterator[tuple[Path, str]]:
    """All that files say: as bytes, and as the texts of tables and databases."""
    for file in folder.rglob("*"):
        if not file.is_file():
            continue
        yield file, file.read_bytes().decode("latin-1")
        if file.suffix == ".parquet":
            yield file, json.dumps(pq.read_table(file).to_pylist(), default=str)
        if file.suffix == ".arrow":
            yield file, json.dumps(read_shard(file).to_pylist(), default=str)
        if file.suffix == ".sqlite":
            with sqlite3.connect(file) as db:
                yield file, "\n".join(db.iterdump())


def nowhere(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    files = list(told(folder))
    assert files
    for file, text in files:
        assert KEY not in text, file
    said = capfd.readouterr()
    assert KEY not in said.out + said.err


CASES: list[dict[str, Any]] = [
    {},
    {"fault_rate": 0.1, "faults": ("400",)},
    {"status": 400},
    {"status": 401},
    {"status": 500},
    {"models_status": 401},
    {"models_status": 500},
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_key_that_is_repeated_reaches_no_file_of_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], case: dict[str, Any]
) -> None:
    monkeypatch.setattr(client, "TRIES", 2)
    known = verifying.rows(12)
    file = verifying.write(tmp_path / "rows.jsonl", known)
    with MockServer(Truth(known), echo=True, **case) as server:
        options = verifying.arguments(file, server.spec, tmp_path / "out")
        ended = _ends(lambda: build_verified.main(options))
    assert (ended == "") == (case.get("status") is None and case.get("models_status") != 401)
    if not ended:  # or the test would find nothing where nothing was said
        assert any("you sent Bearer [redacted]" in text for _, text in told(tmp_path / "out"))
    nowhere(tmp_path, capfd)


@pytest.mark.parametrize("case", CASES[:5], ids=str)
def test_nor_of_a_set_of_steps_nor_of_an_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], case: dict[str, Any]
) -> None:
    monkeypatch.setattr(client, "TRIES", 2)
    build_verified.main(
        f"--benchmark synthetic --input rows=20,seed=1,noise=0.1 --split train --workers 1 "
        f"--teacher annotations --output {tmp_path / 'verified'} --evaluation-size 3".split()
    )
    with MockServer(careless(), echo=True, **case) as server:
        _ends(
            lambda: build_verifier_steps.main(
                f"--verified {tmp_path / 'verified'} --teacher {server.spec} --rows 20 --workers 1 "
                f"--output {tmp_path / 'steps'} --cache {tmp_path / 'steps.sqlite'}".split()
            )
        )
    file = evaluating.own(tmp_path / "own.jsonl", 4)
    with MockServer(Stepper(), echo=True, **case) as server:
        options = evaluating.arguments(file, tmp_path / "out", *evaluating.asking(server.spec))
        _ends(lambda: evaluate_stepwise.main(options))
    nowhere(tmp_path, capfd)


def _ends(act: Any) -> str:
    try:
        act()
    except UserError as error:
        print(error)
        return str(error)
    return ""


# Faults


@pytest.mark.parametrize("fault", EVERY_FAULT)
def test_a_fifth_of_each_fault_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Any) -> None:
    """What stays is asked again by the same command; what was answered never is."""
    file = evaluating.own(tmp_path / "own.jsonl", 12)
    limit = ("--timeout=1",) if fault in ("hang", "drip") else ()
    with MockServer(Stepper()) as server:
        asked = evaluating.asking(server.spec, "safe")
        evaluate_stepwise.main(evaluating.arguments(file, tmp_path / "clean", *asked))
        calls = len(server.asked)
    with MockServer(Stepper(), fault_rate=0.2, faults=(fault,), port=server.port) as faulty:
        for _ in range(20):
            options = evaluating.arguments(file, tmp_path / "out", *asked, *limit, "--at-once=8")
            _ends(lambda: evaluate_stepwise.main(options))  # noqa: B023
            if sum(faulty.answered.values()) == calls:
                break
    assert faulty.faulted[fault] > 0
    assert len(faulty.answered) == calls
    assert max(faulty.answered.values()) == 1
    assert evaluating.contents(tmp_path / "out") == evaluating.contents(tmp_path / "clean")


def test_a_fifth_of_all_of_them_changes_nothing(tmp_path: Path) -> None:
    known = verifying.rows(60)
    file = verifying.write(tmp_path / "rows.jsonl", known)
    more = {"in-flight": "16", "timeout": "2"}
    truth = Truth(known)
    with MockServer(truth) as server:
        build_verified.main(verifying.arguments(file, server.spec, tmp_path / "clean", **more))
        calls = len(server.asked)
    with MockServer(truth, fault_rate=0.2, faults=EVERY_FAULT, port=server.port) as faulty:
        for _ in range(20):
            options = verifying.arguments(file, faulty.spec, tmp_path / "out", **more)
            build_verified.main(options)
            if len(faulty.answered) == calls:
                break
    assert len(faulty.faulted) >= 15
    assert verifying.contents(tmp_path / "out") == verifying.contents(tmp_path / "clean")


# Memory


@pytest.mark.parametrize("fault", ["huge", "bomb"])
def test_replies_without_end_take_no_memory_without_end(tmp_path: Path, fault: Any) -> None:
    """Each of 100 replies is 400 MB; the whole process may have 3 GB of addresses."""
    known = verifying.rows(15)
    file = verifying.write(tmp_path / "rows.jsonl", known)

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    code = (
        "from safe_stepwise.engines import client; client.TRIES = 2; client.FIRST_WAIT_S = 0\n"
        "from scripts import build_verified, cli; cli.run(build_verified.main)"
    )
    with MockServer(lambda _: "{}", fault_rate=1, faults=(fault,)) as server:
        options = verifying.arguments(file, server.spec, tmp_path / "out", workers="1")
        ended = subprocess.run(
            [sys.executable, "-c", code, *options],
            cwd=ROOT, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            capture_output=True, text=True, preexec_fn=bounded, check=False,
        )  # fmt: skip
    assert ended.returncode == 2
    assert re.search(r"^error: .*the reply is longer than 8 MB", ended.stderr, re.MULTILINE)
    assert "Traceback" not in ended.stderr
