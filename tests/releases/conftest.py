"""A local Hub that publishing in this process talks to, and a release small enough to repeat."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from safe_stepwise.store.names import LOCK
from tests.servers.hub_server import TOKEN, HubServer

CARD = "---\nlicense: mit\n{}---\n\n# Words\n"
METRIC = """\
import datasets
import evaluate


class Stepwise(evaluate.Metric):
    def _info(self):
        value = datasets.Value("string")
        return evaluate.MetricInfo(
            description="", citation="", inputs_description="",
            features=datasets.Features({"predictions": value, "references": value}),
        )

    def _compute(self, predictions, references):
        return {"five": 5}
"""


@pytest.fixture(scope="session")
def started() -> Iterator[HubServer]:
    with HubServer() as server:
        yield server


@pytest.fixture
def hub(started: HubServer, monkeypatch: pytest.MonkeyPatch) -> HubServer:
    """For clients that are given its address: the environment was read at import."""
    started.reset()
    monkeypatch.setattr("huggingface_hub._commit_api.is_xet_available", lambda: False)
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda _: None)
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    return started


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A release of a dataset, an adapter and a Space; only its shape is real."""
    root = tmp_path / "release"
    dataset = root / "datasets" / "safe-noise-labels"
    write(dataset / "README.md", CARD.format("tags: [verification]\n"))
    write(dataset / "data" / "synthetic" / "train-00000-of-00001.parquet", "not read here")
    add_adapter(root)
    add_space(root)
    lock(root)
    return root


def add_adapter(root: Path) -> None:
    write(root / "adapter" / "README.md", CARD.format("base_model: some/Tiny-1B\n"))
    config = {"base_model_name_or_path": "some/Tiny-1B", "peft_type": "LORA"}
    write(root / "adapter" / "adapter_config.json", json.dumps(config))
    header = {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    raw = json.dumps(header).encode()
    weights = len(raw).to_bytes(8, "little") + raw + bytes(4)
    (root / "adapter" / "adapter_model.safetensors").write_bytes(weights)


def add_space(root: Path) -> None:
    write(root / "space" / "README.md", CARD.format("title: Steps\nsdk: gradio\n"))
    write(root / "space" / "safe_stepwise.py", METRIC)


def lock(root: Path, version: str = "v0.1.0") -> None:
    """Write the lock of all that is there, as `scripts.regenerate` does at its end."""
    (root / LOCK).unlink(missing_ok=True)
    files = {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
    write(root / LOCK, json.dumps({"version": version, "files": files}))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
