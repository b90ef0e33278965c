"""One file adds one benchmark: `toy` goes all the way, and nothing else knows of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from datasets import load_dataset

from builders.benchmarks import BENCHMARKS, parse_row
from safe_stepwise.errors import RowError, UserError
from safe_stepwise.metric.compute import answers_given
from safe_stepwise.scoring import BENCHMARKS as SCORED
from safe_stepwise.store.names import NOISE_LABELS, RESULTS, TRAJECTORIES, VERIFIED, VERIFIER_STEPS
from scripts import build_verified, build_verifier_steps, evaluate_stepwise, view_traces
from tests.builders.benchmarks import toy

TOWNS = ("Brelstad", "Korwick", "Talmouth", "Fenholm", "Zarhaven", "Mirville")
NAMES = ("Tomek", "Halvor", "Ilsa", "Perrin", "Radek", "Jorun")
HERE = ("--teacher=annotations", "--workers=1")
"""In this process, which alone knows the toy."""
OTHERS = {f"Wexford {n}": f"Wexford {n} is a railway station on line {n}." for n in range(8)}


def people(number: int, same: bool) -> list[tuple[str, str]]:
    """Two people, and where each was born."""
    one, other = (f"{NAMES[(number + k) % 6]} {TOWNS[number % 6][:4]}ov" for k in (0, 1))
    return [(one, TOWNS[number % 6]), (other, TOWNS[(number + (not same)) % 6])]


def row(number: int) -> dict[str, Any]:
    """A comparison of two birthplaces."""
    born = people(number, same=number % 2 == 0)
    return {
        "number": number,
        "toy": f"Were {born[0][0]} and {born[1][0]} born in the same town?",
        "gold": "yes" if number % 2 == 0 else "no",
        "hops": [[name, "place of birth", town] for name, town in born],
        "pages": {**{name: f"{name} was a novelist who was born in {town}." for name, town in born}, **OTHERS},
        "needed": [name for name, _ in born],
    }


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file of the benchmark, with its one registry line in place."""
    monkeypatch.setitem(BENCHMARKS, toy.NAME, toy)
    file = tmp_path / "toy.jsonl"
    lines = (json.dumps(row(n)) for n in range(24))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def build(file: Path, output: Path, split: str) -> None:
    what = ["--benchmark", "toy", "--input", str(file), "--split", split]
    build_verified.main([*what, "--output", str(output), *HERE])


def test_a_benchmark_of_one_file_goes_all_the_way(
    known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verified = tmp_path / "verified"
    build(known, verified, "validation")
    labels = load_dataset(str(verified / NOISE_LABELS), "toy", split="validation", cache_dir=str(tmp_path / "cache"))
    assert labels.num_rows == 24
    assert not any(labels["unverifiable"])
    for dataset in (VERIFIED, NOISE_LABELS):
        card = (verified / dataset / "README.md").read_text(encoding="utf-8")
        assert "- Toy knows nobody but the Brells." in card
        assert "| toy | `mit` | https://example.org/toy |" in card

    replies = {"replies": [], "default": "Step 1: ####ANSWER: yes it is (Final Answer)"}
    (tmp_path / "mock.yaml").write_text(yaml.safe_dump(replies), encoding="utf-8")
    mock, output = f"mock:{tmp_path / 'mock.yaml'}", tmp_path / "results"
    cache = ["--cache", str(tmp_path / "replies.sqlite")]
    methods = ["--method", "no_verification", "--method", "safe"]
    asked = ["--generator", mock, "--verifier", "symbolic", "--judge", "symbolic"]
    evaluate_stepwise.main(["--questions", str(verified), *methods, *asked, "--output", str(output), *cache])
    unverified = json.loads((output / RESULTS).read_bytes())["runs"][0]["benchmarks"]
    # Half are to be answered yes, of which MuSiQue's rule sees one word in three, HotpotQA's none.
    assert unverified["toy"]["f1"] == pytest.approx(0.25)
    assert (output / TRAJECTORIES).read_bytes().count(b"\n") == 48
    assert (output / "report" / "comparison.md").is_file()
    view_traces.main([str(output)])
    assert b"toy-3" in (output / "traces.html").read_bytes()
    capsys.readouterr()


def test_steps_are_made_of_it(known: Path, tmp_path: Path) -> None:
    build(known, tmp_path, "train")
    build_verifier_steps.main(
        ["--verified", str(tmp_path), "--output", str(tmp_path), "--rows=40", "--benchmark=toy", *HERE]
    )
    assert "| toy |" in (tmp_path / VERIFIER_STEPS / "README.md").read_text(encoding="utf-8")


def test_its_rows_are_told_from_others(known: Path) -> None:
    assert parse_row(row(3), "toy", "train").id == "toy-3"
    with pytest.raises(RowError, match="looks like a toy row, not a musique one"):
        parse_row(row(3), "musique", "train")


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_known_scorer_counts_for_each(name: str) -> None:
    assert name == BENCHMARKS[name].NAME
    assert BENCHMARKS[name].SCORING in SCORED
    assert name not in SCORED or name == BENCHMARKS[name].SCORING


def test_the_metric_alone_knows_official_scorers_only() -> None:
    with pytest.raises(UserError, match="unknown benchmark 'toy': give one of hotpotqa"):
        answers_given(["yes"], [["yes"]], benchmark="toy")
