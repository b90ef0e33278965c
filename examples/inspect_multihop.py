"""Inspect's harness on the evaluation samples, scored as the benchmarks score themselves.

    inspect eval examples/inspect_multihop.py --model openai/gpt-4o-mini -T benchmark=musique \\
        -T source=build/demo/datasets/safe-verified-multihop

The model is asked once, by the column ``input``, and its reply is the answer: exact match and F1 by
the benchmark's official rule (`safe_stepwise.scoring`), against the answer and all its aliases. The
tasks of ``eval.yaml`` (``inspect eval hf/NAMESPACE/safe-verified-multihop``) need nothing of ours,
but they know no aliases. ``source`` is a folder of ours or a dataset on the Hub, at ``revision``.

Needs `pip install safe-stepwise inspect-ai datasets`, tried with inspect-ai 0.3.285.
"""

from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState, generate

from safe_stepwise.scoring import BENCHMARKS, exact_match, f1

SOURCE = "NAMESPACE/safe-verified-multihop"


@task
def multihop(
    benchmark: str = "musique", source: str = SOURCE, revision: str | None = None, limit: int | None = None
) -> Task:
    """The evaluation sample of a benchmark, as far as its first ``limit`` questions."""
    if benchmark not in BENCHMARKS:
        raise ValueError(f"benchmark {benchmark!r}: one of {', '.join(BENCHMARKS)}")
    return Task(
        dataset=MemoryDataset(samples(benchmark, source, revision, limit), name=benchmark),
        solver=generate(),
        scorer=official(benchmark),
    )


def samples(benchmark: str, source: str, revision: str | None = None, limit: int | None = None) -> list[Sample]:
    """A sample a question; its targets are all answers that count as right."""
    from datasets import load_dataset

    rows = load_dataset(source, f"{benchmark}_eval", split="test", revision=revision)
    chosen = rows if limit is None else rows.select(range(min(limit, len(rows))))
    return [_sample(row) for row in chosen]


def _sample(row: dict[str, Any]) -> Sample:
    about = {name: row[name] for name in ("question", "kind", "hops")}
    return Sample(row["input"], target=[row["answer"], *row["aliases"]], id=row["id"], metadata=about)


@scorer(metrics={"exact_match": [mean(), stderr()], "f1": [mean(), stderr()]})
def official(benchmark: str) -> Scorer:
    """Exact match and F1 as the benchmark's official scorer has them."""

    async def score(state: TaskState, target: Target) -> Score:
        reply = state.output.completion.strip()
        measured = {
            "exact_match": float(exact_match(reply, target.target, benchmark)),
            "f1": f1(reply, target.target, benchmark),
        }
        return Score(value=measured, answer=reply)

    return score
