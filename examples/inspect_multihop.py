"""Evaluate a model on the evaluation samples with Inspect, scored by the benchmarks' official rules.

    inspect eval examples/inspect_multihop.py --model openai/gpt-4o-mini -T benchmark=synthetic \\
        -T source=build/demo/datasets/safe-verified-multihop

The model gets the prompt of the column ``input``, and its reply is the answer. Exact match and F1 compare
it with the answer and all its aliases (`safe_stepwise.scoring`). The tasks of ``eval.yaml`` (``inspect
eval hf/NAMESPACE/safe-verified-multihop``) do not need this package, but they ignore aliases. ``source``
is a local folder (seen from where you call Inspect), or a dataset on the Hub at ``revision``.

Needs `pip install 'safe-stepwise[metric]' inspect-ai`, tested with inspect-ai 0.3.285.
"""

import os
from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState, generate

from safe_stepwise.scoring import BENCHMARKS, exact_match, f1

SOURCE = "NAMESPACE/safe-verified-multihop"


@task
def multihop(
    benchmark: str = "musique", source: str = SOURCE, revision: str | None = None, limit: int | None = None
) -> Task:
    """Make the task: the first ``limit`` questions (None: all) of a benchmark's evaluation sample."""
    if benchmark not in BENCHMARKS:
        raise PrerequisiteError(f"benchmark {benchmark!r}: one of {', '.join(BENCHMARKS)}")
    return Task(
        dataset=MemoryDataset(samples(benchmark, source, revision, limit), name=benchmark),
        solver=generate(),
        scorer=official(benchmark),
    )


def samples(benchmark: str, source: str, revision: str | None = None, limit: int | None = None) -> list[Sample]:
    """Read a sample for each question of config ``BENCHMARK_eval``, split ``test``; targets are answer and aliases."""
    from datasets import load_dataset

    folder = Path(os.environ.get("PWD", "."), source)  # Inspect imports a task in the task's own folder
    try:
        rows = load_dataset(
            str(folder) if folder.is_dir() else source, f"{benchmark}_eval", split="test", revision=revision
        )
    except (ValueError, OSError) as error:
        raise PrerequisiteError(
            f"{source}: no evaluation sample of {benchmark} ({str(error).splitlines()[0]})"
        ) from None
    rows = rows if limit is None else rows.select(range(min(limit, len(rows))))
    return [_sample(row) for row in rows]


def _sample(row: dict[str, Any]) -> Sample:
    metadata = {name: row[name] for name in ("question", "kind", "hops")}
    return Sample(row["input"], target=[row["answer"], *row["aliases"]], id=row["id"], metadata=metadata)


@scorer(metrics={"exact_match": [mean(), stderr()], "f1": [mean(), stderr()]})
def official(benchmark: str) -> Scorer:
    """Score exact match and F1 by the benchmark's official rules."""

    async def score(state: TaskState, target: Target) -> Score:
        reply = state.output.completion.strip()
        scores = {
            "exact_match": float(exact_match(reply, target.target, benchmark)),
            "f1": f1(reply, target.target, benchmark),
        }
        return Score(value=scores, answer=reply)

    return score
