"""An adapter merged into its base model: for where LoRA is slow (vLLM on a CPU) or not served."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from safe_stepwise.engines.weights import Weights, one_line
from safe_stepwise.errors import UserError


def merge(base: Weights, adapter: Path, folder: Path) -> None:
    """Write base and adapter as one model, in the base's own precision, to ``folder``.

    They are added in float32, so only the sum is rounded. A ``folder`` that is there is replaced,
    whole.

    Raises ``UserError`` for an adapter that does not fit.
    """
    import torch
    from peft import PeftModel
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    where = {"revision": base.commit, "trust_remote_code": False}
    try:
        model = AutoModelForCausalLM.from_pretrained(base.place, dtype=torch.float32, **where)
        merged = PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()
    except Exception as error:  # whatever safetensors, torch or peft raise
        raise UserError(f"{adapter}: cannot be merged into {base} ({one_line(error)})") from None
    half = folder.with_name(f".{folder.name}.{os.getpid()}")
    dtype = AutoConfig.from_pretrained(base.place, **where).dtype
    merged.to(dtype or torch.float32).save_pretrained(half)
    AutoTokenizer.from_pretrained(base.place, **where).save_pretrained(half)
    shutil.rmtree(folder, ignore_errors=True)
    half.rename(folder)
