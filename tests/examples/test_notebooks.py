"""Each notebook runs from its first cell to its last, and its kept outputs are what it prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
MAX_BODY_BYTES = 20_000


def printed(notebook: Any) -> list[str]:
    """What each cell of code shows on the standard output, or as its value."""
    return ["".join(map(_text, cell.get("outputs", []))) for cell in notebook.cells]


def _text(output: Any) -> str:
    if output.output_type == "stream":
        return str(output.text) if output.name == "stdout" else ""
    return str(output.get("data", {}).get("text/plain", output.output_type))


def test_there_are_three_and_they_are_small() -> None:
    assert len(NOTEBOOKS) == 3
    assert all(file.stat().st_size < MAX_BODY_BYTES for file in NOTEBOOKS)


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_it_runs_and_shows_what_is_kept(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel ([dev])")
    pytest.importorskip("ipykernel", reason="needs nbclient and ipykernel ([dev])")
    import nbformat

    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    kept = nbformat.read(file, as_version=4)
    run = nbformat.read(file, as_version=4)
    place = {"metadata": {"path": str(file.parent)}}  # where Jupyter runs it
    nbclient.NotebookClient(run, timeout=250, kernel_name="python3", resources=place).execute()
    assert printed(run) == printed(kept)
    assert any(printed(kept))
