"""The example that trains a tiny verifier, on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples import tiny_verifier

pytest.importorskip("trl", reason="no trl here: `make test-vllm` runs the model tests")
pytestmark = pytest.mark.usefixtures("one_thread")


def test_it_trains_and_says_something(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny_verifier.main(["--output", str(tmp_path), "--rows", "8", "--model", str(base)])
    said = capsys.readouterr().out
    assert "8 rows, 2 steps of 4" in said
    assert "It says: " in said
    assert (tmp_path / "adapter" / "adapter_model.safetensors").is_file()
