"""One run at a time writes to a folder; what stands in the way is one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from safe_stepwise.errors import UserError
from safe_stepwise.store import locks

HOLD = """
import sys
from pathlib import Path
from safe_stepwise.store.locks import exclusive

with exclusive(Path(sys.argv[1])):
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
            locks.exclusive(folder),
        ):
            raise AssertionError
        with (
            pytest.raises(UserError, match="another run is writing here"),
            locks.exclusive(folder, "run"),
        ):
            raise AssertionError
        holder.kill()
    with locks.exclusive(folder):
        assert list(folder.iterdir()) == []  # nothing of it is left behind


@pytest.mark.parametrize("below", [".", "output"])
def test_a_file_in_the_way_is_one_line(tmp_path: Path, below: str) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    with (
        pytest.raises(UserError, match="there is a file where the output folder should be"),
        locks.exclusive(file / below),
    ):
        raise AssertionError
    assert file.read_text() == "mine"


def test_what_can_not_be_made_says_why() -> None:
    with (
        pytest.raises(UserError, match=r"^/proc/output: cannot write \(.+\); choose another"),
        locks.exclusive(Path("/proc/output")),
    ):
        raise AssertionError
