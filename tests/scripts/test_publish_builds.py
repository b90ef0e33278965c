"""The folder of builds alone is published: no manifest, no lock, no other part of a release."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from releases.publish.folder import read_release
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import NOISE_LABELS, VERIFIED
from scripts import build_verified, publish, verify
from tests.evaluators.audit.test_labels import ROWS
from tests.scripts.test_publish import command
from tests.servers.hub_server import HubServer


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    file = folder / "mine.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    verify.main([str(file), "--license=cc0-1.0", "--output", str(folder / "out"), "--workers=1"])
    return folder / "out"


@pytest.fixture
def copy(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "out"))


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with HubServer() as server:
        yield server


def refused(folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        publish.main([str(folder), "--namespace=somebody"])
    return str(caught.value)


def test_a_folder_of_builds_is_published(built: Path, hub: HubServer, tmp_path: Path) -> None:
    dry = command(built, hub, tmp_path, token=None)
    assert dry.returncode == 0, dry.stderr
    assert "datasets/somebody/safe-verified-multihop: to be created" in dry.stdout
    assert "stays here: labels.html" in dry.stdout
    pushed = command(built, hub, tmp_path, "--push")
    assert pushed.returncode == 0, pushed.stdout + pushed.stderr
    assert "3 configurations, 8 rows" in pushed.stdout
    assert {repo.head.oid for repo in hub.store.repos.values()} == {
        repo.tags["v0.1.0"] for repo in hub.store.repos.values()
    }
    again = command(built, hub, tmp_path, "--push")
    assert again.stdout.count("nothing to do") == 2, again.stdout + again.stderr


def test_the_verified_split_alone_is_enough(copy: Path) -> None:
    shutil.rmtree(copy / NOISE_LABELS)
    release = read_release(copy, "somebody")
    assert [artifact.repo for artifact in release.artifacts] == [f"somebody/{VERIFIED}"]
    publish.main([str(copy), "--namespace=somebody"])


def test_what_does_not_belong_together_is_refused(built: Path, copy: Path, tmp_path: Path) -> None:
    record = next((copy / NOISE_LABELS / "statistics").glob("*.json"))
    kept = json.loads(record.read_bytes())
    record.write_text(json.dumps({**kept, "version": "v0.2.0"}))
    assert "holds builds of v0.1.0 and v0.2.0; build all with the same --version" in refused(copy)
    record.write_text(json.dumps({**kept, "files": {}}))
    assert "a build was interrupted in it; run the same build_verified again" in refused(copy)
    (tmp_path / "empty").mkdir()
    assert "no finished release; make one with safe-stepwise regenerate MANIFEST" in refused(tmp_path / "empty")
    source = ["--benchmark=custom", f"--input={built.parent / 'mine.jsonl'}", "--split=train", "--teacher=annotations"]
    build_verified.main([*source, "--output", str(built.parent / "both"), "--workers=1"])
    build_verified.main([*source, "--split=validation", "--output", str(built.parent / "both"), "--workers=1"])
    assert "a question of mine_eval is in train" in refused(built.parent / "both")
