"""A release with an evaluation on the Hub: its report and tasks beside the questions."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from safe_stepwise.store.names import LOCK
from scripts import regenerate
from tests.cards.test_loop import evaluated, readme
from tests.releases.conftest import add_adapter, add_space, lock, write
from tests.scripts.test_blocks import SWEEPS
from tests.scripts.test_publish import command
from tests.servers.hub_server import NAMESPACE, HubServer

VERIFIED = f"{NAMESPACE}/safe-verified-multihop"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release with an evaluation and a block; its adapter and Space have their shape alone."""
    root = tmp_path_factory.mktemp("made")
    write(root / "small.yaml", SWEEPS)
    done = {"workers": 1, "cache": root / "replies.sqlite", "only": ["evaluation", "forms"]}
    regenerate.regenerate(root / "small.yaml", root / "release", **done)
    add_adapter(root / "release")
    write(root / "release" / "adapter" / "README.md", readme({"report": evaluated()}))
    add_space(root / "release")
    lock(root / "release", "v0.2.0")
    return root / "release"


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with HubServer() as server:
        yield server


def test_a_report_is_pushed_loaded_back_and_tagged_with_the_questions(
    made: Path, hub: HubServer, tmp_path: Path
) -> None:
    dry = command(made, hub, tmp_path, token=None)
    assert dry.returncode == 0, dry.stderr
    assert "blocks/forms/report/" in dry.stdout
    pushed = command(made, hub, tmp_path, "--push")
    assert pushed.returncode == 0, pushed.stdout + pushed.stderr
    assert f"{VERIFIED}@" in pushed.stdout  # loaded back

    repo = hub.repo("dataset", VERIFIED)
    there = {path: blob.content for path, blob in repo.commits[repo.tags["v0.2.0"]].files.items()}
    locked = json.loads((made / LOCK).read_text())["files"]
    reports = {p for p in locked if "report/" in p.partition("datasets/")[0]}
    assert {p for p in there if "report/" in p} == {p for p in reports if not p.endswith(".jsonl")}
    for place in ("report", "blocks/forms/report"):
        packed = there[f"{place}/trajectories.jsonl.gz"]
        assert gzip.decompress(packed) == (made / place / "trajectories.jsonl").read_bytes()
        assert f"{place}/traces.html" in there
        assert any(p.startswith(place) and p.endswith("/comparison.md") for p in there)
    tasks = yaml.safe_load(there["eval.yaml"])["tasks"]
    assert {task["split"] for task in tasks} == {"test"}
    assert "report/" in there["README.md"].decode()

    again = command(made, hub, tmp_path, "--push")
    assert again.stdout.count("nothing to do") == 4, again.stdout + again.stderr


def test_tasks_can_be_kept_from_the_leaderboards(made: Path, hub: HubServer, tmp_path: Path) -> None:
    pushed = command(made, hub, tmp_path, "--push", "--no-leaderboard")
    assert pushed.returncode == 0, pushed.stdout + pushed.stderr
    assert "eval.yaml" not in hub.repo("dataset", VERIFIED).head.files
