from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from releases.lock import read_lock
from releases.publish.checks import check_release
from releases.publish.folder import read_release
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import LOCK, STEPS_RECORD
from tests.releases.conftest import lock, write

DEEP = "[" * 100_000


@pytest.mark.parametrize(
    "change",
    [
        {"version": None},
        {"version": 1},
        {"files": None},
        {"files": ["a"]},
        {"files": {"a": 1}},
        {"skipped": "adapter"},
        {"manifest": {"name": "a.yaml"}},
        {"manifest": {"name": "a.yaml", "sha256": 3}},
    ],
)
def test_a_lock_of_another_shape_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    manifest = {"name": "a.yaml", "sha256": "0" * 64}
    whole = {"version": "v1.0.0", "files": {"a": "b"}, "skipped": [], "manifest": manifest}
    write(tmp_path / LOCK, json.dumps(whole))
    assert read_lock(tmp_path, whole) == whole
    (key,) = change
    write(tmp_path / LOCK, json.dumps(whole | change))
    with pytest.raises(UserError, match=rf"{LOCK}: not a lock .* \({key}[^()]* is not [^()]*\)"):
        read_lock(tmp_path)
    del whole[key]
    write(tmp_path / LOCK, json.dumps(whole))
    with pytest.raises(UserError, match=rf"\({key} is not "):
        read_lock(tmp_path, (key,))


def test_records_of_a_release_are_read_strictly(small: Path) -> None:
    config = small / "adapter" / "adapter_config.json"
    steps = small / "datasets" / "safe-verifier-steps" / STEPS_RECORD
    for file in (small / LOCK, config, steps):
        kept = file.read_bytes() if file.is_file() else None
        for text, why in (
            (DEEP, "nested more than 100 deep"),
            ("{", "not JSON"),
            ('{"unverifiable": true,\n"unverifiable": false}', "the key 'unverifiable' stands twice"),
        ):
            write(file, text)
            with pytest.raises(UserError, match=f"^{file}: .*{why}") as caught:
                check_release(read_release(small, "ns"), None, lambda _: None)
            assert len(str(caught.value).splitlines()) == 1
        file.unlink() if kept is None else file.write_bytes(kept)
    write(config, '{"base_model_name_or_path": 3}')
    lock(small)
    with pytest.raises(UserError, match="names no base model"):
        read_release(small, "ns")
