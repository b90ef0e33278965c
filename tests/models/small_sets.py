"""What several model tests are made of: a small set of steps, and BERT's form of a tokenizer of words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scripts import build_verified, build_verifier_steps


def build_steps(folder: Path, questions: int, rows: int) -> Path:
    """A verifier set of so many rows over made-up questions."""
    build_verified.main(
        f"--benchmark synthetic --input rows={questions},seed=1 --split train --teacher annotations "
        f"--output {folder} --workers 1".split()
    )
    build_verifier_steps.main(
        f"--verified {folder} --teacher annotations --rows {rows} --output {folder} --workers 1".split()
    )
    return folder / "safe-verifier-steps"


def as_pair_tokenizer(words: Any) -> Any:
    """A tokenizer of words (its third and fourth are [CLS] and [SEP]) as one that reads pairs of texts."""
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast

    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    named = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    return PreTrainedTokenizerFast(tokenizer_object=words, model_input_names=inputs, **named)
