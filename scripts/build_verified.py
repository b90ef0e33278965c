"""Verify a benchmark and write its verified splits and noise labels as Parquet.

    python -m scripts.build_verified --benchmark musique --input musique_dev.jsonl \\
        --split validation --teacher annotations --output build/musique
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from builders.benchmarks import BENCHMARKS
from builders.benchmarks.sources import canonical_split
from builders.verified.build import Card, build
from builders.verified.collect import EVALUATION_SIZE, Build, source_of
from builders.verified.features import SPLITS
from builders.verified.statistics import Statistics
from builders.work.executors import ENGINES
from builders.work.folders import read_statistics
from builders.work.slurm import Slurm, Submitted
from cards import cards
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import LABELED, NOISE_LABELS, REJECTS, VERIFIED, known_version
from scripts.cli import Parser, cores, one_of, positive, price, run, table
from scripts.teacher import add_teacher_options, client_of, foreseen, known_teacher, spending

CARDS: Mapping[str, Card] = {
    VERIFIED: cards.verified_multihop,
    NOISE_LABELS: cards.noise_labels,
}

EXAMPLES = """
examples:
  # HotpotQA's validation set, from its original file
  python -m scripts.build_verified --benchmark hotpotqa --input hotpot_dev_distractor_v1.json \\
      --split validation --teacher annotations --output build/verified

  # the training set into the same folder: builds accumulate
  python -m scripts.build_verified --benchmark hotpotqa --input hotpot_train_v1.1.json \\
      --split train --teacher annotations --output build/verified

  # a copy on the Hub, at a revision (a commit or a tag)
  python -m scripts.build_verified --benchmark musique --input NAMESPACE/NAME@REVISION \\
      --split validation --teacher annotations --output build/verified

  # a synthetic file, a JSON object a line: our columns and "truth", which is never read to label
  python -m scripts.build_verified --benchmark synthetic --input made_up.jsonl \\
      --split train --teacher annotations --output build/synthetic

  # made-up questions, 12 in 100 of them with noise: no input file needed
  python -m scripts.build_verified --benchmark synthetic --input rows=2000,seed=1,noise=0.12 \\
      --split train --teacher annotations --output build/synthetic

  # a model behind any OpenAI-compatible server: first what it may cost, then (without the last
  # three options) the work
  python -m scripts.build_verified --benchmark musique --input musique_dev.jsonl \\
      --split validation --teacher openai:openai/gpt-oss-120b@http://localhost:8000/v1 \\
      --output build/by-model --estimate --price-prompt 0.10 --price-completion 0.50

A script for mock:FILE is JSON or YAML; all of it is in safe_stepwise/engines/mock.py:
  {"replies": [{"role": "extract", "reply": "{\\"triples\\": []}"}], "default": "I do not know."}

A run that was stopped or killed goes on where it was when started again. Then:
  load_dataset("build/verified/safe-verified-multihop", "hotpotqa")          # verified rows
  load_dataset("build/verified/safe-verified-multihop", "hotpotqa_labeled")  # all rows, labels
  load_dataset("build/verified/safe-noise-labels", "hotpotqa")               # labels only

exit status: 0 done, 2 something to mend (one line says what), 130 interrupted, 1 a fault of ours
"""


def main(arguments: Sequence[str]) -> None:
    """Build and print a summary; raises ``UserError`` for what the user can mend."""
    options = _parser().parse_args(arguments)
    teachers = known_teacher(options.teacher, options.cache, options.in_flight)
    plan = Build(
        benchmark=one_of(options.benchmark, BENCHMARKS, "--benchmark"),
        source=options.input,
        split=known_split(options.split),
        output=options.output,
        teacher=teachers,
        version=known_version(options.version),
        seed=options.seed,
        limit=options.limit,
        keep_rejects=options.on_error == "keep",
        evaluation_size=options.evaluation_size,
        **engine_of(options),
    )
    try:
        if options.estimate:
            print(foreseen(plan, options.price_prompt, options.price_completion))
            return
        teachers.check()
        if earlier := replaced(plan):
            print(earlier, flush=True)
        print(summary(plan, build(plan, CARDS)))
        print(spending(client_of(teachers)))
    except Submitted as message:
        print(message)
    finally:
        teachers.close()


def known_split(name: str) -> str:
    """``train`` or ``validation``; raises ``UserError`` for any other split."""
    split = canonical_split(name)
    if split not in SPLITS:
        raise UserError(f"--split {name}: only {' and '.join(SPLITS)} have the gold annotations")
    return split


def replaced(plan: Build) -> str:
    """What another source, limit or teacher made in the place of this build; empty if nothing."""
    dataset = plan.output / VERIFIED
    for made in read_statistics(dataset) if os.access(dataset, os.R_OK) else ():
        if (made["benchmark"], made["split"]) == (plan.benchmark, plan.split):
            before = (made["source"]["digest"], made["limit"], made["teacher"])
            if before != (source_of(plan).digest, plan.limit, plan.teacher.name):
                return (
                    f"replaces the {plan.benchmark} {plan.split} in {plan.output}: "
                    f"{made['rows']:,} rows of {made['source']['name']}, by {made['teacher']}"
                )
    return ""


def summary(plan: Build, statistics: Statistics) -> str:
    """What was found, where it is, how to open it."""
    found = [(f"  {type_}", count) for type_, count in statistics.unverifiable.items()]
    rows: list[tuple[str, object]] = [
        (f"{plan.benchmark} {plan.split}", "rows"),
        ("read", statistics.rows),
        ("verified", statistics.verified),
        ("unverifiable", sum(statistics.unverifiable.values())),
        *found,
        ("not judged", statistics.unparsed),
        ("rejected", statistics.rejected),
    ]
    lines = [table(rows)]
    if statistics.evaluation is not None:
        sample = statistics.evaluation
        lines.append(f"\nevaluation sample: {sample.rows} rows")
        if sample.left_out:
            lines[-1] += (
                f"; {sample.left_out} verified rows cannot have exactly {sample.passages} passages"
                " and were left out"
            )
    if statistics.replies:
        counts = ", ".join(f"{number:,} {kind}" for kind, number in statistics.replies.items())
        lines.append(f"\nreplies of the teacher: {counts}")
    if statistics.replies.get("failed"):
        lines.append("run the same command again: only what failed is asked")
    if not statistics.verified:
        lines.append(
            f"\nno row was verified: {plan.split} is in {plan.benchmark}_labeled, but not in the "
            f"config {plan.benchmark}"
        )
    if statistics.rejected:
        lines.append(f"\nrejected rows, with reasons: {plan.output / REJECTS}")
    verified = plan.output / VERIFIED
    lines += [
        f"\n{verified}",
        f"{plan.output / NOISE_LABELS}",
        f'\nload_dataset("{verified}", "{plan.benchmark}{LABELED}", split="{plan.split}")',
    ]
    return "\n".join(lines)


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """Where the work runs. None of it changes a byte of the result."""
    add = parser.add_argument
    add("--workers", type=positive, default=cores(), metavar="N", help="default: all cores")
    add("--engine", default="local", metavar="NAME", help=f"{', '.join(ENGINES)} (default local)")
    add(
        "--ranks",
        type=positive,
        metavar="N",
        help="parts that another engine cuts the work into (default: as many as workers)",
    )
    slurm = parser.add_argument_group("on Slurm", "other options: SBATCH_ACCOUNT and its like")
    slurm.add_argument("--slurm-partition", metavar="NAME", help="default: $SBATCH_PARTITION")
    slurm.add_argument(
        "--slurm-time", default=Slurm().time, metavar="TIME", help=f"default {Slurm().time}"
    )


def engine_of(options: argparse.Namespace) -> dict[str, Any]:
    """What `add_engine_options` was given, as fields of a `Build`."""
    return {
        "workers": options.workers,
        "engine": one_of(options.engine, ENGINES, "--engine"),
        "ranks": options.ranks,
        "slurm": Slurm(options.slurm_partition, options.slurm_time),
    }


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m scripts.build_verified",
        description="Verify a multi-hop QA benchmark against its own gold passages.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--benchmark", required=True, metavar="NAME", help=", ".join(BENCHMARKS))
    add(
        "--input",
        required=True,
        metavar="SOURCE",
        help="the benchmark's file, hub-id@revision, or rows=N,seed=N,noise=RATE for synthetic",
    )
    add("--split", required=True, help="train or validation (also: dev)")
    add(
        "--teacher",
        required=True,
        metavar="SPEC",
        help="annotations (no model), openai:MODEL[@http://HOST:PORT/v1], or vllm: or transformers:"
        " and MODEL[@REVISION][+ADAPTER[@REVISION]]; to try things out, with no model and marked as"
        " simulated, symbolic[:error_rate=0.1,seed=3] or mock:FILE",
    )
    add("--output", required=True, type=Path, metavar="DIR", help="builds there accumulate")
    add("--limit", type=positive, metavar="N", help="read only the first N rows")
    add_engine_options(parser)
    add(
        "--on-error",
        choices=["stop", "keep"],
        default="stop",
        help=f"a row that cannot be read stops the run, or is kept apart in DIR/{REJECTS}",
    )
    model = add_teacher_options(parser)
    model.add_argument(
        "--estimate", action="store_true", help="print calls and tokens, ask nothing, build nothing"
    )
    money = "price of a million {} tokens, in any currency (with --estimate; both or neither)"
    model.add_argument("--price-prompt", type=price, metavar="X", help=money.format("prompt"))
    model.add_argument("--price-completion", type=price, metavar="X", help=money.format("reply"))
    add("--seed", type=int, default=0, metavar="N", help="of the evaluation sample (default 0)")
    add(
        "--evaluation-size",
        type=positive,
        default=EVALUATION_SIZE,
        metavar="N",
        help="questions of the evaluation sample (default 1000; all, if there are fewer)",
    )
    add("--version", default="v0.1.0", help="of the release (default v0.1.0)")
    return parser


if __name__ == "__main__":
    run(main)
