"""What a model is known by: a commit, or what is in its folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from safe_stepwise.engines.weights import Model, digest, find_adapter, find_model
from safe_stepwise.errors import UserError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model of one small and one large file."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(bytes(5 << 20))
    return folder


def test_a_copy_is_the_same_model(folder: Path, tmp_path: Path) -> None:
    found = find_model(Model(str(folder)))
    copy = shutil.copytree(folder, tmp_path / "elsewhere" / "model")
    assert find_model(Model(str(copy))).revision == found.revision
    assert (found.name, found.place, found.commit) == ("model", str(folder), None)
    assert str(folder.parent) not in str(found)


@pytest.mark.parametrize("at", [0, (5 << 20) - 1])
def test_other_weights_of_the_same_size_are_another_model(folder: Path, at: int) -> None:
    before = digest(folder)
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(at)
        file.write(b"\1")
    assert digest(folder) != before


def test_another_template_is_another_model_and_a_readme_is_not(folder: Path) -> None:
    before = digest(folder)
    (folder / "README.md").write_text("Trained with care.")
    assert digest(folder) == before
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    assert digest(folder) != before


@pytest.mark.parametrize(
    ("name", "revision", "told"),
    [
        ("no/such/folder", None, "no Hub id"),
        ("FOLDER", "v1.0.0", "leave out @v1.0.0"),
        ("EMPTY", None, "no config.json"),
    ],
)
def test_what_is_no_model_is_a_users_mistake(
    folder: Path, tmp_path: Path, name: str, revision: str | None, told: str
) -> None:
    (tmp_path / "empty").mkdir()
    name = {"FOLDER": str(folder), "EMPTY": str(tmp_path / "empty")}.get(name, name)
    with pytest.raises(UserError, match=told) as caught:
        find_model(Model(name, revision))
    assert "\n" not in str(caught.value)


def test_a_model_is_no_adapter(folder: Path) -> None:
    with pytest.raises(UserError, match=r"no adapter_config\.json"):
        find_adapter(Model(str(folder)))


def test_a_tag_is_resolved_to_its_commit(hub_adapter: str) -> None:
    found = find_adapter(Model(hub_adapter, "v1.0.0"))
    assert (found.name, found.revision) == (hub_adapter, found.folder.name)
    assert (found.place, found.commit) == (hub_adapter, found.revision)
    assert len(found.revision) == 40


def test_a_revision_that_is_nowhere_is_a_users_mistake(hub_adapter: str) -> None:
    with pytest.raises(UserError, match=r"somebody/adapter@v9\.0\.0: .*can't be reached"):
        find_adapter(Model(hub_adapter, "v9.0.0"))
