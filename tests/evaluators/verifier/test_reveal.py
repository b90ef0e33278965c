"""REVEAL's table, made up in its columns: chains of its rows, one line for a damaged one, and the Hub's copy."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest
from huggingface_hub import CommitOperationAdd, HfApi

from evaluators.verifier.reveal import TABLE, read_table
from safe_stepwise.errors import UserError
from safe_stepwise.formats.chains import RIGHT, WRONG
from tests.servers.hub_server import NAMESPACE, TOKEN, HubServer

ROOT = Path(__file__).parents[3]
COLUMNS = ("dataset", "answer_id", "question", "step_idx", "step", "evidence", "correctness_label")
ORU = "Oru: Oru is a town in Marn.\nIt lies on the Vel."
ROWS = [
    ("made_up", "a1", "Where is Oru?", "1", "So it is in Marn.", "", "Correct"),
    ("made_up", "a1", "Where is Oru?", "0", "Oru is a town, in Marn.", ORU, "Correct"),
    ("made_up", "a1", "Where is Oru?", "0", "Oru is a town, in Marn.", "Vel: The Vel is a river.", "Correct"),
    ("made_up", "a2", "Where is Vel?", "0", "Vel is a town in Lom.", "Vel: The Vel is a river.", "Incorrect"),
    ("made_up", "a2", "Where is Vel?", "1", "So it is in Lom.", "", ""),
]


def write_table(file: Path, rows: list[tuple[str, ...]], columns: tuple[str, ...] = COLUMNS) -> Path:
    with file.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([columns, *rows])
    return file


def refused(file: Path) -> str:
    with pytest.raises(UserError) as caught:
        list(read_table(file))
    return str(caught.value)


def changed(number: int, column: str, value: str) -> list[tuple[str, ...]]:
    row = [*ROWS[number]]
    row[COLUMNS.index(column)] = value
    return [*ROWS[:number], tuple(row), *ROWS[number + 1 :]]


def test_a_chain_has_its_steps_in_order_and_all_evidence(tmp_path: Path) -> None:
    (place, first), (_, second) = read_table(write_table(tmp_path / "t.csv", ROWS))
    assert place.endswith("t.csv, line 2")
    assert (first.id, [(step.text, step.label) for step in first.steps]) == (
        "a1",
        [("Oru is a town, in Marn.", RIGHT), ("So it is in Marn.", RIGHT)],
    )
    assert [page.text for page in first.known_to(first.steps[0])] == [ORU, "Vel: The Vel is a river."]
    assert [step.label for step in second.steps] == [WRONG, None]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (changed(0, "step_idx", "two"), "line 2: step_idx is 'two', expected a number"),
        (
            changed(1, "correctness_label", "Maybe"),
            "correctness_label is 'maybe'; expected Correct, Incorrect or nothing",
        ),
        (changed(1, "correctness_label", "Incorrect"), "step 0 has two texts or labels"),
        (changed(4, "step", " "), "step 2 is empty"),
        ([*ROWS, ("made_up", "a3", "Where?", "0")], "line 8: a row of this answer ends before step"),
    ],
)
def test_a_damaged_row_is_told_in_one_line(tmp_path: Path, rows: list[tuple[str, ...]], message: str) -> None:
    refusal = refused(write_table(tmp_path / "t.csv", rows))
    assert message in refusal
    assert "\n" not in refusal


def test_another_table_is_refused(tmp_path: Path) -> None:
    message = refused(write_table(tmp_path / "t.csv", [("a", "b")], ("question", "answer")))
    assert "lacks the columns answer_id, step_idx, step, evidence, correctness_label" in message
    (tmp_path / "t.csv").write_bytes(b"\xff\xfe")
    assert "can't be read as a CSV table in UTF-8" in refused(tmp_path / "t.csv")
    assert "can't be read" in refused(tmp_path / "none.csv")


def test_the_hub_s_copy_is_read_at_a_commit_and_the_token_is_written_nowhere(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t.csv", ROWS)
    with HubServer() as hub:
        api = HfApi(endpoint=hub.url, token=TOKEN)
        name = f"{NAMESPACE}/reveal"
        api.create_repo(name, repo_type="dataset", private=True)
        operation = CommitOperationAdd(TABLE, table.read_bytes())
        commit = api.create_commit(name, [operation], commit_message="Add", repo_type="dataset").oid

        def evaluate(source: str, token: str | None) -> subprocess.CompletedProcess[str]:
            arguments = ("--benchmark", "reveal", source, "--verifier", "checker", "--output", str(tmp_path / "out"))
            command = [sys.executable, "-m", "scripts.evaluate_verifier", *arguments]
            env = {**hub.env(tmp_path / "home", token), "PATH": "/usr/bin:/bin"}
            return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)

        done = evaluate(f"{name}@{commit}", TOKEN)
        assert done.returncode == 0, done.stderr
        assert "2 chains about 2 questions have 3 labelled steps" in (tmp_path / "out/chain_quality.md").read_text()
        moving, stranger = evaluate(name, TOKEN), evaluate(f"{name}@{commit}", None)
    assert "must be pinned" in moving.stderr
    assert stranger.returncode == 2
    assert "gated ones need `hf auth login`" in stranger.stderr
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert TOKEN.encode() not in written + done.stdout.encode() + done.stderr.encode()
