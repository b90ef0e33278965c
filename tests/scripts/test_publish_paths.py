"""A release of relation paths goes to the Hub, and comes back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from releases.publish.folder import read_release
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import LOCK
from scripts import regenerate
from tests.makers import films
from tests.releases.conftest import add_adapter, lock, write
from tests.scripts.test_publish import command, edit, refused, split
from tests.scripts.test_release_paths import MANIFEST, SET, written
from tests.servers.hub_server import NAMESPACE, HubServer

DATASET, MODEL = f"{NAMESPACE}/dp-metaqa-paths", f"{NAMESPACE}/dp-metaqa-Tiny-1B"
CONFIGS = [name + way for name in ("kto", "paths", "prompt_completion") for way in ("", "_by_template")]
OPEN = f"""
import json
from datasets import get_dataset_config_names, load_dataset
rows = {{}}
for config in get_dataset_config_names("{DATASET}", revision="v0.3.0"):
    splits = load_dataset("{DATASET}", config, revision="v0.3.0")
    rows[config] = {{split: part.num_rows for split, part in splits.items()}}
print(json.dumps(rows))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `scripts.regenerate` makes, and adapters of the shape of real ones beside it."""
    root = tmp_path_factory.mktemp("made")
    films.written(root / "films", 80)
    regenerate.regenerate(written(root / "films", root, MANIFEST), root / "release", workers=1)
    add_adapter(root / "release")
    record = {"dataset": {"name": "dp-metaqa-paths"}}
    write(root / "release" / "adapter" / "training.json", json.dumps(record))
    write(root / "release" / "sft" / "training.json", json.dumps(record))
    lock(root / "release", "v0.3.0")
    return root / "release"


@pytest.fixture
def release(made: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(made, tmp_path / "release"))


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with HubServer() as server:
        yield server


def test_it_is_pushed_once_and_loads_back_by_its_tag(made: Path, hub: HubServer, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    dry = command(made, hub, home, token=None)
    assert dry.returncode == 0, dry.stderr
    assert f"datasets/{DATASET}: to be created" in dry.stdout
    assert f"{MODEL}: to be created" in dry.stdout
    assert "stays here: README.md, sft/training.json" in dry.stdout
    pushed = command(made, hub, home, "--push")
    assert pushed.returncode == 0, pushed.stdout + pushed.stderr
    assert "6 configurations" in pushed.stdout
    assert sorted(repo.id for repo in hub.store.repos.values()) == [MODEL, DATASET]
    for repo in hub.store.repos.values():
        assert [c.title for c in repo.history(repo.head)] == ["Release v0.3.0", "initial commit"]
        assert repo.tags == {"v0.3.0": repo.head.oid}

    held = len(hub.written())
    again = command(made, hub, home, "--push")
    assert again.stdout.count("nothing to do") == 2, again.stdout + again.stderr
    assert len(hub.written()) == held

    rows = hub.client(OPEN, home, token=None)
    assert sorted(rows) == sorted(CONFIGS)
    told = json.loads((made / SET / "statistics" / "paths.json").read_text())["files"]
    assert rows == {
        config: {split: of["rows"] for split, of in told[config].items() if of["rows"]} for config in CONFIGS
    }


def test_an_adapter_is_called_after_what_it_learnt(release: Path) -> None:
    names = [artifact.repo for artifact in read_release(release, NAMESPACE).artifacts]
    assert names == [DATASET, MODEL]
    for learnt in ({"name": "safe-verifier-steps"}, {}, "dp-metaqa-paths"):
        write(release / "adapter" / "training.json", json.dumps({"dataset": learnt}))
        last = read_release(release, NAMESPACE).artifacts[-1]
        assert last.repo == f"{NAMESPACE}/safe-verifier-Tiny-1B"


Rows = list[dict[str, Any]]


@pytest.mark.parametrize(
    ("config", "taken", "said"),
    [
        ("paths", lambda row: row, "a test question is in train ("),
        ("paths", lambda row: {**row, "question_id": "new"}, "a test question is in train ('"),
        ("kto", lambda row: row, "a test question is in train ('question "),
        ("prompt_completion_by_template", lambda row: row, "a template of test is in train"),
        ("paths_by_template", lambda row: {**row, "question_id": "new"}, "a template of test is in train ('"),
    ],
)
def test_what_is_of_test_is_refused_in_train(
    release: Path, config: str, taken: Callable[[dict[str, Any]], dict[str, Any]], said: str
) -> None:
    import pyarrow.parquet as pq

    row = pq.read_table(split(release, config, "test", SET)).to_pylist()[0]

    def leak(rows: Rows) -> None:
        rows.append(taken(row))

    edit(split(release, config, "train", SET), leak)
    lock(release, "v0.3.0")
    assert f"{SET}: {said}" in refused(release)


def test_names_that_differ_by_case_alone_are_no_leak(release: Path) -> None:
    """In MetaQA they are different films."""
    import pyarrow.parquet as pq

    row = pq.read_table(split(release, "paths", "test", SET)).to_pylist()[0]
    other = {**row, "question_id": "new", "question": row["question"].upper()}
    edit(split(release, "paths", "train", SET), lambda rows: rows.append(other))
    lock(release, "v0.3.0")
    read = read_release(release, NAMESPACE)
    from releases.publish.checks import check_leaks

    check_leaks(read.root)


def test_a_folder_without_a_lock_is_not_published(release: Path) -> None:
    (release / LOCK).unlink()
    with pytest.raises(UserError, match="it is no finished release"):
        read_release(release, NAMESPACE)
