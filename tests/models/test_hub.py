"""Adapters through the local Hub, with the unmodified clients."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("peft")
pytest.importorskip("uvicorn")

from huggingface_hub import HfApi

from releases.publish.folder import Artifact, LocalFile
from releases.publish.hub import Hub
from releases.publish.load_back import Pushed, load_back
from tests.servers.hub_server import NAMESPACE, TOKEN, HubServer

PUSH = f"""
from huggingface_hub import HfApi
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

sizes = dict(vocab_size=64, hidden_size=16, intermediate_size=16, num_hidden_layers=1)
model = LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=2))
model.push_to_hub("{NAMESPACE}/base")
config = LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False)
adapter = get_peft_model(model, config)
adapter.push_to_hub("{NAMESPACE}/adapter")
HfApi().create_tag("{NAMESPACE}/adapter", tag="v0.1.0")
weights = [value for name, value in adapter.state_dict().items() if "lora_A" in name]
print(weights[0].sum().item())
"""
LOAD = f"""
from peft import PeftModel
from transformers import AutoModelForCausalLM

base = AutoModelForCausalLM.from_pretrained("{NAMESPACE}/base")
adapter = PeftModel.from_pretrained(base, "{NAMESPACE}/adapter", revision="v0.1.0")
weights = [value for name, value in adapter.state_dict().items() if "lora_A" in name]
print(weights[0].sum().item())
"""


def test_an_adapter_is_pushed_and_loaded_by_tag(tmp_path: Path) -> None:
    with HubServer() as hub:
        (tmp_path / "fresh").mkdir()
        pushed = hub.client(PUSH, tmp_path)
        loaded = hub.client(LOAD, tmp_path / "fresh", token=None)
        assert loaded == pytest.approx(pushed)
        repo = hub.repo("model", f"{NAMESPACE}/adapter")
        files = tuple(
            LocalFile(path, blob.content, len(blob.content))
            for path, blob in repo.head.files.items()
            if path != ".gitattributes"
        )
        item = Pushed(Artifact("model", repo.id, "adapter", files), repo.head.oid)
        (line,) = load_back([item], Hub(HfApi(endpoint=hub.url)), TOKEN)
    assert "2 tensors for " in line
