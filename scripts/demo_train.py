"""Train the tiny verifier on the demo's verifier set, and measure it beside what asks no training.

make demo-train    (after `make demo`; or, where torch, trl, peft, bitsandbytes and vLLM are
                    installed: python -m scripts.demo_train)
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluators.verifier.page import SHOWN, title_of
from safe_stepwise.engines.chat import need
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import VERIFIER_STEPS
from scripts import evaluate_verifier, train_verifier
from scripts.cli import Parser, run
from trainers.base_model import find_base
from trainers.checkpoints import read_json
from trainers.config import Recipe, read_recipe
from trainers.merging import merge
from trainers.rows import fingerprint, open_rows
from trainers.verifier import RECORD

ROOT = Path(__file__).parents[1]
RECIPE = ROOT / "trainers" / "recipes" / "smollm2-cpu.yaml"
MERGED = "with-adapter"
REPLY = 160
"""Tokens a verdict may have; the longest of the set has 110. An untrained model rambles on."""
ON_A_CPU = {
    "VLLM_CPU_KVCACHE_SPACE": "2",  # GiB; 16 unless told
    "VLLM_CPU_OMP_THREADS_BIND": f"0-{(os.cpu_count() or 1) - 1}",
}


def main(arguments: Sequence[str]) -> None:
    """Train, measure, say where the adapter is not better; done parts are not done again."""
    parser = Parser(
        prog="python -m scripts.demo_train",
        description=(__doc__ or "").partition("\n")[0],
        epilog="example:\n  make demo demo-train    # in environments of their own",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add, build = parser.add_argument, ROOT / "build"
    add("--demo", type=Path, default=build / "demo", metavar="DIR", help="default build/demo")
    add("--output", type=Path, default=build / "demo-train", metavar="DIR", help="…/demo-train")
    options = parser.parse_args(arguments)
    datasets, adapter = options.demo / "datasets", options.output / "adapter"
    if not (datasets / VERIFIER_STEPS).is_dir():
        raise UserError(f"{datasets}: holds no {VERIFIER_STEPS}; run `make demo` first")
    need("vllm", "vLLM", "vllm", "vllm")  # before minutes of training
    asked = {"dataset": str(datasets / VERIFIER_STEPS), "output": str(adapter)}
    recipe = read_recipe(RECIPE, asked)
    forget_stale(recipe)
    options_ = [part for name, value in asked.items() for part in (f"--{name}", value)]
    train_verifier.main(["--config", str(RECIPE), "--resume", *options_])
    losses = [point["loss"] for point in read_json(adapter / RECORD)["curve"]]
    print("\nLoss of each step:", *(f"{loss:.3f}" for loss in losses))
    print("\nOn the rows of the test split, and the steps before them:\n", flush=True)
    base, model = find_base(recipe.base_model)[0], options.output / MERGED
    # vLLM on a CPU is fast, but not where it adds an adapter's product to each layer's.
    merge(base, adapter, model)
    for name, value in ON_A_CPU.items():
        os.environ.setdefault(name, value)
    evaluate_verifier.main(
        [
            *("--steps", asked["dataset"], "--verified", str(datasets)),
            *("--verifier", f"vllm:{model}", "--baseline", f"vllm:{base.folder}"),
            *("--baseline", "symbolic"),
            *("--max-tokens", str(REPLY), "--cache", str(options.output / "replies.sqlite")),
            *("--output", str(options.output / "quality")),
        ]
    )
    found = json.loads((options.output / "quality" / "verifier_quality.json").read_text("utf-8"))
    print("\n" + "\n".join(margins(found)))


def forget_stale(recipe: Recipe) -> None:
    """Remove an adapter of other rows or another recipe, which `--resume` would take for done."""
    file = recipe.output / RECORD
    if not file.is_file():
        return
    made = read_json(file)
    rows = open_rows(recipe.dataset, "train", recipe.filters)[1]
    places = ("base_model", "dataset", "output")
    same = all(made["recipe"].get(k) == v for k, v in recipe.plain().items() if k not in places)
    if not same or made["dataset"]["sha256"] != fingerprint(rows):
        shutil.rmtree(recipe.output)


def margins(found: Mapping[str, Any]) -> Iterator[str]:
    """A line a baseline: by how much the trained one is better (+) or worse, by measure."""
    first, *others = found["verifiers"]
    for other in others:
        pairs = ((name, first["measures"][name], other["measures"][name]) for name in SHOWN)
        shown = [f"{name} {a - b:+.3f}" for name, a, b in pairs if None not in (a, b)]
        yield f"trained against {title_of(other)}: {', '.join(shown)}"


if __name__ == "__main__":
    run(main)
