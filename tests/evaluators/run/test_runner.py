"""The journal of a run knows the lines that it wrote, and no others."""

from pathlib import Path

import pytest

from evaluators.run.runner import Journal
from safe_stepwise.records import Trajectory

ENDED = Trajectory("q1", "safe", (), (), "Oru", "answered")


@pytest.mark.parametrize(
    ("written", "damaged"),
    [
        (b'"key":"k"', b'"key":["k"]'),
        (b'"key":"k"', b'"key":null'),
        (b'"failure":"",', b""),
        (b'"method":"safe"', b'"method": "safe"'),
        (b'"answered"}}', b'"answered"'),
    ],
)
def test_a_damaged_line_is_taken_out_and_owed_again(tmp_path: Path, written: bytes, damaged: bytes) -> None:
    journal = Journal(tmp_path / "journal")
    journal.add("k", ENDED)
    journal.close()
    whole = (tmp_path / "journal").read_bytes()
    assert written in whole
    (tmp_path / "journal").write_bytes(whole.replace(written, damaged))
    damaged_one = Journal(tmp_path / "journal")
    assert damaged_one.get("k") is None
    damaged_one.add("k", ENDED)
    damaged_one.close()
    assert (tmp_path / "journal").read_bytes() == whole
