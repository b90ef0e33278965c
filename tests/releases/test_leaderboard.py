"""Tasks where Inspect and the Hub's leaderboards look for them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from releases.publish.checks import check_release
from releases.publish.folder import FinishedRelease, read_release
from releases.publish.leaderboard import add_tasks, render_tasks
from safe_stepwise.errors import UserError
from tests.releases.conftest import CARD, lock, write

VERIFIED = "datasets/safe-verified-multihop"


SAMPLED = CARD.format(
    """configs:
- config_name: musique
  data_files: [{split: train, path: "data/musique/train-*.parquet"}]
- config_name: musique_eval
  data_files: [{split: test, path: "data/musique_eval/test-*.parquet"}]
"""
)


@pytest.fixture
def sampled(small: Path) -> Path:
    """The small release with verified benchmarks, of which one has a sample."""
    write(small / VERIFIED / "README.md", SAMPLED)
    lock(small)
    return small


def files(release: FinishedRelease) -> dict[str, bytes]:
    (found,) = [one for one in release.artifacts if one.folder == VERIFIED]
    return {file.path: file.read() for file in found.files}


def test_the_samples_are_tasks_for_inspect(sampled: Path) -> None:
    written = yaml.safe_load(files(add_tasks(read_release(sampled, "somebody")))["eval.yaml"])
    assert written["evaluation_framework"] == "inspect-ai"
    scorers = {"musique_eval_exact_match": "exact", "musique_eval_f1": "f1"}
    assert {task["id"]: task["scorers"][0]["name"] for task in written["tasks"]} == scorers
    for task in written["tasks"]:
        # What Inspect takes: it refuses further keys.
        assert set(task) == {"id", "config", "split", "field_spec", "solvers", "scorers"}
        assert (task["config"], task["split"]) == ("musique_eval", "test")
        assert task["field_spec"] == {"input": "input", "target": "answer"}


def test_without_a_sample_there_are_no_tasks(sampled: Path) -> None:
    assert "eval.yaml" not in files(read_release(sampled, "somebody"))  # as with --no-leaderboard
    write(sampled / VERIFIED / "README.md", CARD.format(""))
    assert "eval.yaml" not in files(add_tasks(read_release(sampled, "somebody")))
    assert render_tasks([]) == b""


def test_what_is_made_on_the_way_counts_as_the_card_it_is_made_of(sampled: Path) -> None:
    read: list[str] = []
    check_release(add_tasks(read_release(sampled, "somebody")), None, read.append)
    assert read.count(f"{VERIFIED}/README.md") == 1 + 1  # itself, the tasks
    write(sampled / VERIFIED / "README.md", SAMPLED.replace("musique", "hotpotqa"))
    with pytest.raises(UserError, match=r"README\.md: differs"):
        check_release(add_tasks(read_release(sampled, "somebody")), None, read.append)
