"""One run at a time writes to a folder; what stands in the way is one line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from safe_stepwise.errors import UserError
from safe_stepwise.store import files

HOLD = """
import sys
from pathlib import Path
from safe_stepwise.store.files import lock_folder

with lock_folder(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_folder_is_held_until_the_end_even_a_violent_one(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "output"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3],
    )  # fmt: skip
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with (
            pytest.raises(UserError, match="another build is writing here; wait for it or choose"),
            files.lock_folder(folder),
        ):
            raise AssertionError
        with pytest.raises(UserError, match="another run is writing here"), files.lock_folder(folder, "run"):
            raise AssertionError
        holder.kill()
    with files.lock_folder(folder):
        assert list(folder.iterdir()) == []  # nothing of it is left behind


@pytest.mark.parametrize("below", [".", "output"])
def test_a_file_in_the_way_is_one_line(tmp_path: Path, below: str) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    with (
        pytest.raises(UserError, match="there is a file where the output folder should be"),
        files.lock_folder(file / below),
    ):
        raise AssertionError
    assert file.read_text() == "mine"


def test_what_can_not_be_made_says_why() -> None:
    with (
        pytest.raises(UserError, match=r"^/proc/output: cannot write \(.+\); choose another"),
        files.lock_folder(Path("/proc/output")),
    ):
        raise AssertionError


@pytest.mark.parametrize("place", ["data", "data/x/rows.parquet", ".work", "rejects.jsonl"])
@pytest.mark.parametrize("target", ["folder", "nowhere", "itself"])
def test_a_link_among_what_a_run_writes_is_one_line(tmp_path: Path, place: str, target: str) -> None:
    """It would be replaced, or what it leads to written into."""
    output, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    link = output / place
    link.parent.mkdir(parents=True)
    if target == "folder":
        elsewhere.mkdir()
        (elsewhere / ".mine.half").touch()
    link.symlink_to(link if target == "itself" else elsewhere)
    leads = re.escape(str(link if target == "itself" else elsewhere))
    with (
        pytest.raises(UserError, match=rf"{re.escape(place)}: a link \(to {leads}\).*remove it"),
        files.lock_folder(output, owned=["data", ".work", "rejects.jsonl"]),
    ):
        raise AssertionError
    assert link.is_symlink()
    assert elsewhere.exists() == (target == "folder")
    assert not elsewhere.exists() or (elsewhere / ".mine.half").exists()


def test_links_of_others_do_not_matter_and_the_folder_may_be_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "mine").symlink_to(tmp_path)
    (tmp_path / "out").symlink_to("real")
    with (
        files.lock_folder(tmp_path / "out", owned=["data"]),
        pytest.raises(UserError, match="another build is writing here"),
        files.lock_folder(tmp_path / "real"),
    ):
        raise AssertionError


@pytest.mark.parametrize("target", ["nowhere", "out", "nowhere/deep"])
def test_a_folder_that_is_a_link_to_none_is_one_line(tmp_path: Path, target: str) -> None:
    (tmp_path / "out").symlink_to(tmp_path / target)
    with (
        pytest.raises(UserError, match="there is a link that leads to no folder where the output"),
        files.lock_folder(tmp_path / "out"),
    ):
        raise AssertionError
    assert (tmp_path / "out").is_symlink()
