"""`measure_faithfulness` on what `evaluate_stepwise` kept of symbolic players."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evaluators.faithfulness.command import ACCEPTED, OWNED
from evaluators.faithfulness.judged_outcomes import COLUMNS
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import CHAINS, FAITHFULNESS
from scripts import build_verified, evaluate_stepwise, join_results, measure_faithfulness
from tests.memory.sitecustomize import PYTHONPATH

ROOT = Path(__file__).parents[2]
MADE = (*OWNED, "results.json", "report/faithfulness.md")


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("verified")
    build_verified.main(
        ["--benchmark", "synthetic", "--input", "rows=60,seed=3", "--split", "validation",
         "--teacher", "annotations", "--output", str(output)]
    )  # fmt: skip
    return output


def evaluate(verified: Path, output: Path, *more: str) -> Path:
    evaluate_stepwise.main(
        ["--questions", str(verified), "--limit", "40", "--output", str(output),
         "--cache", str(output.parent / "cache.sqlite"), "--verifier", "symbolic", *more]
    )  # fmt: skip
    return output


@pytest.fixture(scope="module")
def evaluated(verified: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return evaluate(
        verified, tmp_path_factory.mktemp("evaluated") / "results",
        "--method", "no_verification", "--method", "safe", "--method", "direct", "--method", "cot",
        "--samples", "3", "--generator", "symbolic:error_rate=0.3,seed=1", "--judge", "symbolic",
    )  # fmt: skip


@pytest.fixture
def kept(evaluated: Path, tmp_path: Path) -> Path:
    """A copy of the evaluation, without what was measured as it ended."""
    from shutil import copytree

    folder = copytree(evaluated, tmp_path / "kept")
    for name in OWNED:
        (folder / name).unlink()
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in MADE}


def rows_of(folder: Path, name: str = CHAINS) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text("utf-8").splitlines()]


def measured(folder: Path, *more: str) -> dict[str, Any]:
    measure_faithfulness.main([str(folder), "--workers", "1", *more])
    found: dict[str, Any] = json.loads((folder / FAITHFULNESS).read_text("utf-8"))
    assert json.loads((folder / "results.json").read_text("utf-8"))["faithfulness"] == found
    return found


@pytest.mark.parametrize("workers", ["1", "3"])
def test_anew_it_ends_in_the_bytes_of_the_evaluation(evaluated: Path, kept: Path, workers: str) -> None:
    measure_faithfulness.main([str(kept), "--workers", workers])
    assert contents(kept) == contents(evaluated)


def test_another_order_of_the_lines_changes_no_byte(evaluated: Path, kept: Path) -> None:
    for name in ("trajectories.jsonl", "questions.jsonl"):
        lines = (kept / name).read_text("utf-8").splitlines(keepends=True)
        (kept / name).write_text("".join(reversed(lines)), "utf-8")
    measured(kept)
    assert contents(kept) == contents(evaluated)


def test_the_counts_are_those_of_the_lines(evaluated: Path) -> None:
    """Counted anew from the lines alone, by nothing of the code that summed them up."""
    found = json.loads((evaluated / FAITHFULNESS).read_text("utf-8"))
    rows = rows_of(evaluated)
    assert [one["taken"] for one in found["systems"]].count("best_of_n") == 1
    for place, system in enumerate(found["systems"]):
        own = [row for row in rows if row["system"] == place]
        assert len(own) == system["all"]["questions"] == 40
        for rule in ("house", "paper"):
            table = system["all"]["rules"][rule]["answers"]["exact_match"]
            for answer in ("right", "wrong"):
                expected = Counter(
                    row["rules"][rule]["path"] if row["rules"] else row["response"]
                    for row in own
                    if row["exact_match"] == (answer == "right")
                )
                assert table[answer] == {name: expected[name] for name in COLUMNS}
    direct = next(one for one in found["systems"] if one["method"] == "direct")
    assert direct["all"]["unstructured"] + direct["all"]["abstained"] == 40
    assert found["simulated"]


def test_who_makes_no_mistakes_is_never_spurious_by_the_house(verified: Path, tmp_path: Path) -> None:
    folder = evaluate(verified, tmp_path / "r", "--method", "safe", "--generator", "symbolic")
    (system,) = json.loads((folder / FAITHFULNESS).read_text("utf-8"))["systems"]
    table = system["all"]["rules"]["house"]["answers"]["exact_match"]
    assert table["spurious"]["value"] == 0.0, table["right"]
    assert table["spurious"]["of"] >= 36  # of 40; the rest is unjudgeable
    assert not (folder / ACCEPTED).read_text()


def test_each_option_counts(kept: Path) -> None:
    one = measured(kept, "--rule", "paper", "--sigma", "0.95")
    assert one["settings"]["rules"] == ["paper"]
    assert all([*system["all"]["rules"]] == ["paper"] for system in one["systems"])
    other = measured(kept, "--rule", "paper", "--retrieval", "words", "--sigma", "0.2")
    assert other["systems"] != one["systems"]
    (file := kept.parent / "kb.txt").write_text("Oru|country|Kelvia\n")
    assert measured(kept, "--kb", str(file))["settings"]["kb"]["triples"] == 1


def test_steps_that_the_verifier_accepted(verified: Path, tmp_path: Path) -> None:
    folder = evaluate(
        verified, tmp_path / "r", "--method", "safe", "--method", "no_verification",
        "--generator", "symbolic:error_rate=0.5,seed=4",
        "--verifier", "symbolic:error_rate=0.9,seed=5",
    )  # fmt: skip
    rows = rows_of(folder, ACCEPTED)
    assert rows
    for row in rows:
        assert (row["method"], row["rule"], row["simulated"]) == ("safe", "house", True)
        assert row["fault"]
        assert [one["number"] for one in row["previous"]] == [*range(1, row["number"])]


def test_a_folder_of_before_takes_its_evidence_from_the_source(evaluated: Path, kept: Path, verified: Path) -> None:
    rows = rows_of(kept, "questions.jsonl")
    for row in rows:
        for name in ("evidence", "decomposition", "kind"):
            row.pop(name, None)
    (kept / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(UserError, match="keeps no evidence to judge by; name the questions"):
        measured(kept)
    found = measured(kept, "--questions", str(verified))
    assert found["settings"]["evidence"]["source"] == "safe-verified-multihop"
    expected = json.loads((evaluated / FAITHFULNESS).read_text("utf-8"))
    assert found["systems"] == expected["systems"]


def test_a_joined_evaluation_can_be_measured(evaluated: Path, tmp_path: Path) -> None:
    join_results.main([str(evaluated), "--output", str(tmp_path / "joined")])
    joined = (tmp_path / "joined" / FAITHFULNESS).read_bytes()
    found = measured(tmp_path / "joined")
    assert (tmp_path / "joined" / FAITHFULNESS).read_bytes() == joined
    expected = json.loads((evaluated / FAITHFULNESS).read_text("utf-8"))
    assert found["systems"] == expected["systems"]


def test_where_nothing_is_annotated_nothing_is_said(tmp_path: Path) -> None:
    row = {"question": "Where is Oru?", "answer": "Marn", "passages": ["Oru is in Marn."]}
    (tmp_path / "own.jsonl").write_text(json.dumps(row))
    step = {"reply": "Step 1: ####ANSWER: Marn (Final Answer)"}
    (tmp_path / "replies.json").write_text(json.dumps({"replies": [step]}))
    folder = tmp_path / "results"
    evaluate_stepwise.main(
        ["--questions", str(tmp_path / "own.jsonl"), "--method", "no_verification",
         "--generator", f"mock:{tmp_path}/replies.json", "--output", str(folder),
         "--cache", str(tmp_path / "cache.sqlite")]
    )  # fmt: skip
    assert "faithfulness" not in json.loads((folder / "results.json").read_text())
    assert not [name for name in OWNED if (folder / name).exists()]
    with pytest.raises(UserError, match="keeps no evidence"):
        measured(folder)


@pytest.mark.parametrize(
    ("break_it", "told"),
    [
        (lambda folder: (folder / "results.json").unlink(), "no results.json of an evaluation"),
        (lambda folder: (folder / "results.json").write_text("[]"), "not the record"),
        (lambda folder: (folder / "questions.jsonl").write_text(""), "is not in questions.jsonl"),
        (lambda folder: (folder / "trajectories.jsonl").write_text("{}"), "line 1"),
        (lambda folder: (folder / "trajectories.jsonl").write_text(""), "holds no trajectory"),
    ],
)
def test_a_broken_folder_is_one_line(kept: Path, break_it: Any, told: str) -> None:
    break_it(kept)
    with pytest.raises(UserError, match=told) as raised:
        measured(kept)
    assert len(str(raised.value).splitlines()) == 1


def test_mistakes_on_the_command_line_are_one_line(tmp_path: Path) -> None:
    for given in (["none"], ["none", "--rule", "ours"], ["none", "--sigma", "2"], []):
        with pytest.raises(UserError) as raised:
            measure_faithfulness.main(given)
        assert len(str(raised.value).splitlines()) == 1
    ran = subprocess.run(
        [sys.executable, "-m", "scripts.measure_faithfulness", "none"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": PYTHONPATH}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 2
    assert len(ran.stderr.splitlines()) == 1
    assert ran.stderr.startswith("error: ")
