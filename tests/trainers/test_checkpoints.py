"""A checkpoint counts when all of it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainers.checkpoints import COMPLETION_MARK, is_complete, last_complete, mark_complete, remove_stale


def checkpoint(folder: Path, step: int, marked: bool = True) -> Path:
    made = folder / f"checkpoint-{step}"
    made.mkdir()
    (made / "optimizer.pt").write_bytes(b"state" * step)
    if marked:
        mark_complete(made, {"step": step})
    return made


def test_the_last_complete_one_is_taken(tmp_path: Path) -> None:
    assert last_complete(tmp_path) is None
    old = checkpoint(tmp_path, 9)
    checkpoint(tmp_path, 100, marked=False)
    assert last_complete(tmp_path) == old
    assert last_complete(tmp_path) != checkpoint(tmp_path, 10)  # as numbers, 10 comes after 9
    assert last_complete(tmp_path) == tmp_path / "checkpoint-10"


@pytest.mark.parametrize("harm", ["cut", "gone", "mark"])
def test_what_is_not_whole_does_not_count(tmp_path: Path, harm: str) -> None:
    made = checkpoint(tmp_path, 5)
    assert is_complete(made)
    if harm == "cut":
        (made / "optimizer.pt").write_bytes(b"sta")
    elif harm == "gone":
        (made / "optimizer.pt").unlink()
    else:
        (made / COMPLETION_MARK).write_text("{")
    assert not is_complete(made)


def test_what_is_half_or_later_is_removed(tmp_path: Path) -> None:
    kept = checkpoint(tmp_path, 4)
    checkpoint(tmp_path, 2)
    checkpoint(tmp_path, 6, marked=False)
    assert remove_stale(tmp_path, kept) == ["checkpoint-6"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-2", "checkpoint-4"]
