"""What is written is there whole or not at all, whoever else writes it and whoever is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from safe_stepwise.errors import UserError
from safe_stepwise.store import files

ROOT = Path(__file__).parents[3]
KILLED = """
import os, signal, sys
from pathlib import Path
from safe_stepwise.store import files

def parts():
    yield b"half of it"
    os.kill(os.getpid(), signal.SIGKILL)

at = Path(sys.argv[1])
if sys.argv[2] == "file":
    files.write_parts(at, parts())
with files.write_folder(at) as made:
    (made / "one").write_text("half of it")
    list(parts())
"""


def kill_a_writer(of: Path, kind: str = "file") -> Path:
    """Returns what it leaves, which has one name whoever wrote it."""
    code = [sys.executable, "-c", KILLED, str(of), kind]
    assert subprocess.run(code, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    left = of.with_name(f".{of.name}.half")
    assert left.exists()
    assert not of.exists()
    return left


def everything(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_what_a_killed_writer_left_the_next_one_takes(tmp_path: Path) -> None:
    kill_a_writer(tmp_path / "report.md")
    files.write_atomically(tmp_path / "report.md", b"all")
    kill_a_writer(tmp_path / "model", "folder")
    with files.write_folder(tmp_path / "model") as made:
        assert list(made.iterdir()) == []
        (made / "two").touch()
    assert everything(tmp_path) == ["model", "model/two", "report.md"]
    assert (tmp_path / "report.md").read_bytes() == b"all"


def test_who_holds_a_folder_sweeps_what_it_owns_at_every_level(tmp_path: Path) -> None:
    for place in ("", "report", "report/verifier", "foreign"):
        (tmp_path / place).mkdir(exist_ok=True)
        kill_a_writer(tmp_path / place / "a.md")
        kill_a_writer(tmp_path / place / "b", "folder")
    (tmp_path / "report" / ".a.md").touch()
    with files.lock_folder(tmp_path, owned=["report", "not-there"]):
        assert everything(tmp_path) == [
            *("foreign", "foreign/.a.md.half", "foreign/.b.half", "foreign/.b.half/one"),
            *("report", "report/.a.md", "report/verifier"),
        ]


def test_what_is_being_written_is_not_swept(tmp_path: Path) -> None:
    def parts() -> list[bytes]:
        with files.lock_folder(tmp_path):
            return [b"all"]

    class Late:
        def __iter__(self):  # type: ignore[no-untyped-def]
            return iter(parts())

    files.write_parts(tmp_path / "a", Late())
    with files.write_folder(tmp_path / "b") as made, files.lock_folder(tmp_path):
        assert made.is_dir()
    assert everything(tmp_path) == ["a", "b"]


def test_writers_of_one_file_take_turns(tmp_path: Path) -> None:
    """Else the later one would empty the file that the earlier one is about to rename."""
    file, size = tmp_path / "shard", 200_000

    def write(number: int) -> bytes:
        files.write_parts(file, [bytes([number]) * size] * 2)
        return file.read_bytes()

    with ThreadPoolExecutor(8) as threads:
        found = [*threads.map(write, range(40))]
    assert all(len(content) == 2 * size and len({*content}) == 1 for content in found)
    assert everything(tmp_path) == ["shard"]


def test_makers_of_one_folder_take_turns(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "model"

    def make(number: int) -> None:
        with files.write_folder(folder) as made:
            assert list(made.iterdir()) == []
            for name in "ab":
                (made / name).write_text(str(number))
            if number % 2:
                files.remove_folder(folder)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(make, range(40)))
    assert everything(tmp_path) == ["deep", "deep/model", "deep/model/a", "deep/model/b"]
    assert (folder / "a").read_text() == (folder / "b").read_text()


def test_what_fails_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with pytest.raises(ZeroDivisionError):
        files.write_parts(tmp_path / "a", (b"new" for _ in [1 / 0]))
    with pytest.raises(ZeroDivisionError), files.write_folder(tmp_path / "b") as made:
        (made / "one").write_text(str(1 / 0))
    assert everything(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_a_link_in_a_writer_s_way_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / ".a.half").symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="symbolic links"):
        files.write_atomically(tmp_path / "a", b"x")
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_link_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    for target in ("mine", "nowhere"):
        link = tmp_path / f"to-{target}"
        link.symlink_to(tmp_path / target)
        with pytest.raises(UserError, match=rf"to-{target}: is a link, .*; remove it, or choose"):
            files.write_lines(link, ["x"])
        assert link.is_symlink()
    assert everything(tmp_path) == ["mine", "to-mine", "to-nowhere"]
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_copy_is_as_readable_as_any_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 3_000_000)
    (tmp_path / "a").chmod(0o600)
    files.copy_file(tmp_path / "a", tmp_path / "b")
    (tmp_path / "c").touch()
    assert (tmp_path / "b").read_bytes() == (tmp_path / "a").read_bytes()
    assert os.stat(tmp_path / "b").st_mode == os.stat(tmp_path / "c").st_mode
