"""Compute the loop's metric with a server of the OpenAI protocol: here a simulation of a model on this machine.

    python -m examples.loop_metric

`safe-stepwise stand-in` serves simulated players without any model; the result says "simulated". With
a server of your own (`vllm serve MODEL`), call `compute_scores` with "openai:MODEL@http://HOST:PORT/v1".
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safe_stepwise.commands.reading import examples
from safe_stepwise.errors import UserError
from scripts.cli import run

SPACE = Path(__file__).parents[1] / "evaluators" / "safe_stepwise"
"""The metric's folder; after `safe-stepwise register`, `evaluate.load` finds it by name, too."""
ERRS = "error_rate=0.4,seed=1"
"""The options of the simulated generator; the verifier makes no errors."""
PRINTED = ("exact_match", "f1", "calls_per_question", "steps_per_question", "error_types")


def main(_: Sequence[str]) -> None:
    with stand_in(f"symbolic:{ERRS}") as generator, stand_in() as verifier:
        for method in ("no_verification", "safe"):
            results = compute_scores(generator, verifier if method == "safe" else None)
            print(f"{method}:", *(f"{name} {results[name]}," for name in PRINTED))
    print("simulated:", results["simulated"])


def compute_scores(generator: str, verifier: str | None) -> dict[str, Any]:
    """Compute the metric on the built-in example questions; without a verifier, no step is verified."""
    import evaluate

    rows = examples()
    metric = evaluate.load(str(SPACE), "loop")
    results: dict[str, Any] = metric.compute(
        questions=[row["question"] for row in rows],
        passages=[row["passages"] for row in rows],
        references=[[row["answer"]] for row in rows],
        benchmark="2wikimultihopqa",
        generator=generator,
        verifier=verifier,
        method="safe" if verifier else "no_verification",
    )
    return results


@contextmanager
def stand_in(spec: str = "symbolic") -> Iterator[str]:
    """Serve simulated players for the context; yield the engine spec of the server."""
    command = [sys.executable, "-m", "safe_stepwise.commands.main", "stand-in", spec, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ)
    try:
        assert process.stdout is not None
        specs = [word for word in process.stdout.readline().split() if word.startswith("openai:")]
        if not specs:
            raise UserError(f"{' '.join(command)} ended with {process.wait()}: see what it says")
        yield specs[0]
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    run(main)
