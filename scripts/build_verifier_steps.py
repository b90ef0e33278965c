"""Make the step-level verifier set of verified questions: ideal steps, checked errors, verdicts.

    python -m scripts.build_verifier_steps --verified build/verified --teacher annotations \\
        --rows 4000 --output build/steps
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from builders.benchmarks import BENCHMARKS
from builders.steps.build import build
from builders.steps.collect import MAX_LENGTH, StepsBuild
from builders.steps.composition import Composition
from builders.steps.statistics import StepStatistics
from cards import verifier_steps as card
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import REFUSED, REQUEST_FAILED, VERIFIER_STEPS, known_version
from safe_stepwise.taxonomy import ERROR_TYPES
from scripts.cli import Parser, cores, one_of, positive, run, table, warn
from scripts.step_maker import known_maker
from scripts.teacher import add_teacher_options, client_of, spending

EXAMPLES = """
examples:
  # 4,000 steps of everything in build/verified, about a third of them correct
  python -m scripts.build_verifier_steps --verified build/verified --teacher annotations \\
      --rows 4000 --output build/steps

  # two benchmarks, exactly 900 questions, counted with the tokenizer of the model to be trained
  python -m scripts.build_verifier_steps --verified build/verified --teacher annotations \\
      --rows 3000 --questions 900 --benchmark musique --benchmark hotpotqa \\
      --tokenizer Qwen/Qwen3-8B --max-length 4096 --output build/steps

  # with the hard cases that refine_verifier_steps found among the same questions, by the same seed
  python -m scripts.build_verifier_steps --verified build/verified --teacher annotations \\
      --rows 4000 --refined build/refined/refined.jsonl --output build/steps

  # a model behind any OpenAI-compatible server writes the steps; the checker still has to agree
  python -m scripts.build_verifier_steps --verified build/verified --rows 4000 \\
      --teacher openai:openai/gpt-oss-120b@http://localhost:8000/v1 --output build/steps

  # an ablation: what steps of questions that could not be verified do to a verifier (train_verifier
  # --plus); a model writes them, and nothing checks them
  python -m scripts.build_verifier_steps --verified build/verified --rows 2000 --unverifiable \\
      --teacher openai:openai/gpt-oss-120b@http://localhost:8000/v1 --output build/unverified

The folder --verified is the --output of build_verified, or the datasets folder of a release.
Questions of its evaluation samples, and near-duplicates of them, are left out. A run that was
stopped or killed goes on where it was when started again. Then:
  load_dataset("build/steps/safe-verifier-steps")                       # one row a step
  load_dataset("build/steps/safe-verifier-steps", "prompt_completion")  # for TRL's SFTTrainer

exit status: 0 done, 2 something to mend (one line says what), 130 interrupted, 1 a fault of ours
"""


def main(arguments: Sequence[str]) -> None:
    """Build and print a summary; raises ``UserError`` for what the user can mend."""
    options = _parser().parse_args(arguments)
    plan = StepsBuild(
        verified=options.verified,
        output=options.output,
        composition=Composition(
            options.rows, options.questions, options.ideal, None if options.refined else 0
        ),
        benchmarks=tuple(one_of(name, BENCHMARKS, "--benchmark") for name in options.benchmark),
        test_share=options.test_share,
        version=known_version(options.version),
        seed=options.seed,
        workers=options.workers,
        tokenizer=options.tokenizer,
        max_length=options.max_length,
        pool=options.pool,
        refined=options.refined,
        unverifiable=options.unverifiable,
    )
    if plan.unverifiable and plan.refined:
        raise UserError("--refined rows are of verified questions; leave it out, or --unverifiable")
    maker = known_maker(
        options.teacher,
        options.seed,
        options.cache,
        options.in_flight,
        unverifiable=options.unverifiable,
    )
    client = client_of(maker)
    try:
        print(summary(plan, build(plan, maker, card.files, warn)))
    finally:
        # Its account outlives the client, and is owed whatever came of the build.
        if spent := spending(client):
            print(spent)


def summary(plan: StepsBuild, made: StepStatistics) -> str:
    """What was made, where it is, how to open it."""
    header = ("benchmark", "rows", "questions", "ideal", "injected", "refined", "tried", "passing")
    rows = [
        (
            name,
            *(b[column] for column in header[1:6]),
            made.trajectories[name]["questions"],
            made.trajectories[name]["passing"],
        )
        for name, b in made.benchmarks.items()
    ]
    names = list(made.benchmarks)
    types = [
        (entry.name, *(sum(made.types[n].get(entry.name, {}).values()) for n in names))
        for entry in ERROR_TYPES
    ]
    splits = ", ".join(f"{name} {s['rows']:,} rows" for name, s in made.splits.items())
    out = sum(k["questions"] for k in made.kept_out.values())
    refused = sum(number for reasons in made.refused.values() for number in reasons.values())
    lines = [
        table([header, *rows]),
        "",
        table([("error type", *names), *types]),
        f"\n{splits}; {sum(made.missing_evidence.values()):,} rows of missing evidence",
        f"kept out for the evaluation sample: {out:,} questions",
    ]
    for name, short in made.shortfalls.items():
        missing = ", ".join(f"{what} {number:,}" for what, number in short.items())
        lines.append(f"{name} has fewer than wanted, others stand in: {missing}")
    if made.refined is not None:
        given = made.refined["rows"]
        chosen = sum(b["refined"] for b in made.benchmarks.values())
        lines.append(f"refined rows: {chosen:,} of the {given:,} in {made.refined['file']}")
    if made.unverifiable:
        lines.append("of unverifiable questions: nothing checked these rows (for an ablation only)")
    if refused:
        lines.append(f"refused, with reasons: {refused:,} in {plan.output / REFUSED}")
    if failed := sum(reasons.get(REQUEST_FAILED, 0) for reasons in made.refused.values()):
        lines.append(f"{failed:,} requests failed; run the same command again: only they are asked")
    folder = plan.output / VERIFIER_STEPS
    return "\n".join([*lines, f"\n{folder}", f'\nload_dataset("{folder}")'])


def share(text: str) -> float:
    """An option's share, from 0 to 1 (for argparse)."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share from 0 to 1, like 0.34")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m scripts.build_verifier_steps",
        description="Make the step-level verifier set from verified questions.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--verified", required=True, type=Path, metavar="DIR", help="what build_verified wrote")
    add(
        "--teacher",
        required=True,
        metavar="SPEC",
        help="annotations (no model), openai:MODEL[@http://HOST:PORT/v1], or vllm: or transformers:"
        " and MODEL[@REVISION][+ADAPTER[@REVISION]]; mock:FILE to try things out",
    )
    add("--rows", required=True, type=positive, metavar="N", help="rows to choose, exactly")
    add("--output", required=True, type=Path, metavar="DIR", help=f"{VERIFIER_STEPS} goes there")
    add("--questions", type=positive, metavar="N", help="of exactly N questions (default: any)")
    add("--ideal", type=share, default=0.34, metavar="SHARE", help="of correct steps (0.34)")
    add("--test-share", type=share, default=0.1, metavar="SHARE", help="of rows for test (0.1)")
    add(
        "--benchmark",
        action="append",
        default=[],
        metavar="NAME",
        help="one of those in --verified; may be repeated (default: all of them)",
    )
    add("--refined", type=Path, metavar="FILE", help="of refine_verifier_steps: rows that join in")
    add(
        "--unverifiable",
        action="store_true",
        help="of the questions that could not be verified instead; nothing checks their steps",
    )
    add("--pool", type=positive, metavar="N", help="try N questions of each split (default: all)")
    add("--seed", type=int, default=0, metavar="N", help="of every draw (default 0)")
    add("--version", default="v0.1.0", help="of the release, as of --verified (default v0.1.0)")
    add("--workers", type=positive, default=cores(), metavar="N", help="default: all cores")
    add(
        "--tokenizer",
        metavar="NAME",
        help="count tokens with this one (name or folder); else bytes bound them",
    )
    add(
        "--max-length",
        type=positive,
        default=MAX_LENGTH,
        metavar="N",
        help=f"tokens that a row may have (default {MAX_LENGTH})",
    )
    add_teacher_options(parser)
    return parser


if __name__ == "__main__":
    run(main)
