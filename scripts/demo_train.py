"""Train the tiny verifier on the demo's verifier set, and compare it with untrained baselines."""

import os
from dataclasses import dataclass
from pathlib import Path

from evaluators.verifier import command as verifier
from safe_stepwise.engines.base import Allowance, require_modules
from safe_stepwise.errors import UserError
from safe_stepwise.methods.verifier import ROLE
from safe_stepwise.store.names import VERIFIER_STEPS
from scripts.cli import command, run
from scripts.evaluate_verifier import evaluate
from scripts.training import RECIPES, train_or_reuse
from trainers import checkpoints, record
from trainers.config import VerifierRecipe
from trainers.models import find_base, merge

ROOT = Path(__file__).parents[1]
RECIPE = RECIPES / "smollm2-cpu.yaml"
MERGED = "with-adapter"
REPLY = 160
"""The most tokens of a verdict; the longest of the set has 110. An untrained model does not stop by itself."""
CPU_ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "2",  # GiB, instead of 16
    "VLLM_CPU_OMP_THREADS_BIND": f"0-{(os.cpu_count() or 1) - 1}",
}


@dataclass(frozen=True, kw_only=True)
class Options:
    demo: Path = ROOT / "build" / "demo"
    output: Path = ROOT / "build" / "demo-train"


@command
def main(options: Options) -> None:
    """Train and evaluate a verifier, and print where baselines are better; skip what an earlier run completed."""
    datasets, adapter = options.demo / "datasets", options.output / "adapter"
    if not (datasets / VERIFIER_STEPS).is_dir():
        raise UserError(f"{datasets}: holds no {VERIFIER_STEPS}; run `make demo` first")
    require_modules("vllm", "vLLM", "vllm", "vllm")  # before minutes of training
    values = {"dataset": str(datasets / VERIFIER_STEPS), "output": str(adapter)}
    recipe, text = train_or_reuse(RECIPE, values, VerifierRecipe)
    print(text)
    losses = [point["loss"] for point in checkpoints.read_json(adapter / record.RECORD)["curve"]]
    print("\nLoss of each step:", *(f"{loss:.3f}" for loss in losses))
    print("\nOn the rows of the test split, and the steps before them:\n", flush=True)
    base, model = find_base(recipe.base_model)[0], options.output / MERGED
    # On a CPU, vLLM is fast with merged weights, but slow with an adapter.
    merge(base, adapter, model)
    for name, value in CPU_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    evaluation = verifier.Options(
        steps=values["dataset"],
        verified=datasets,
        verifier=f"vllm:{model}",
        baseline=(f"vllm:{base.folder}", "symbolic"),
        allowance=Allowance.by_role({ROLE: REPLY}),
        cache=options.output / "replies.sqlite",
        output=options.output / "quality",
    )
    print(evaluate(evaluation))
    print("\n" + "\n".join(verifier.render_margins(checkpoints.read_json(evaluation.output / verifier.QUALITY))))


if __name__ == "__main__":
    run(main)
