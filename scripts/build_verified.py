"""Verify a benchmark and write its verified splits and noise labels as Parquet.

    safe-stepwise build_verified --benchmark musique --input musique_dev.jsonl \\
        --split validation --teacher annotations --output build/musique
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from builders.benchmarks import BENCHMARKS
from builders.benchmarks.sources import canonical_split
from builders.verified.build import build
from builders.verified.collect import EVALUATION_SIZE, Build
from builders.verified.estimate import told
from builders.verified.features import SPLITS
from builders.verified.questions import PASSAGES
from builders.verified.summary import replaced, summary
from builders.verified.teachers.choice import client_of, known_teacher, spending
from builders.verified.teachers.llm import EXTRACT, PATH, PROMPTS
from builders.work.executors import Submitted
from cards.datasets import CARDS
from safe_stepwise.errors import UserError, one_of
from safe_stepwise.store.names import REJECTS, known_version
from scripts.cli import COUNT, FILE, FOLDER, SEED, add_teacher, add_teacher_options, command, price, run, share
from scripts.engine_options import add_engine_options, engine_of
from scripts.role_options import add_role_options


def main(arguments: Sequence[str]) -> None:
    """Build and print a summary; raises ``UserError`` for what the user can mend."""
    options = _parser().parse_args(arguments)
    asked = (options.teacher, options.cache, options.in_flight, options.timeout)
    teachers = known_teacher(*asked, allowance=options.allowance, lists=Path())
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
        evaluation_passages=options.evaluation_passages,
        min_confidence=options.min_confidence,
        published=options.published,
        **engine_of(options),
    )
    try:
        if options.estimate:
            print(told(plan, options.price_prompt, options.price_completion))
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


def _parser() -> argparse.ArgumentParser:
    parser = command("build_verified", "Verify a multi-hop QA benchmark against its own gold passages.")
    add = parser.add_argument
    add("--benchmark", required=True, metavar="NAME", help=", ".join(BENCHMARKS))
    source = "a file, hub-id@revision; synthetic: rows=N,seed=N,noise=RATE,writer=NAME,passages=N"
    add("--input", required=True, metavar="SOURCE", help=source)
    add("--split", required=True, help="train or validation (also: dev)")
    add_teacher(
        parser,
        "published:FILE[,FILE] (lists of unverifiable questions, as the SAFE authors share them); "
        "to try things out, with no model and marked as simulated, "
        "symbolic[:error_rate=0.1,seed=3] or mock:FILE",
    )
    add("--output", **FOLDER, required=True, help="builds there accumulate")
    add("--limit", **COUNT, help="read only the first N rows")
    add_engine_options(parser)
    bad = f"a row that cannot be read stops the run, or is kept apart in DIR/{REJECTS}"
    add("--on-error", choices=["stop", "keep"], default="stop", help=bad)
    sure = "count no noise of which the label is less sure than X, 0 to 1 (0: count all)"
    add("--min-confidence", type=share, default=0.0, metavar="X", help=sure)
    scored = "JSONL labels to score ours against, never to label; the card tells how they agree"
    add("--published", **FILE, help=scored)
    model = add_teacher_options(parser)
    add_role_options(model, [prompt.role for prompt in PROMPTS], [EXTRACT.role, PATH.role])
    no_more = "print calls and tokens, ask nothing, build nothing"
    model.add_argument("--estimate", action="store_true", help=no_more)
    money = "price of a million {} tokens, in any currency (with --estimate; both or neither)"
    model.add_argument("--price-prompt", type=price, metavar="X", help=money.format("prompt"))
    model.add_argument("--price-completion", type=price, metavar="X", help=money.format("reply"))
    add("--seed", **SEED, help="of the evaluation sample (default 0)")
    size = "questions of the evaluation sample (default 1000; all, if there are fewer)"
    add("--evaluation-size", **COUNT, default=EVALUATION_SIZE, help=size)
    add("--evaluation-passages", **COUNT, default=PASSAGES, help=f"of each (default {PASSAGES})")
    add("--version", default="v0.1.0", help="of the release (default v0.1.0)")
    return parser


if __name__ == "__main__":
    run(main)
