"""Make the step-level verifier set of verified questions: ideal steps, checked errors, verdicts.

    python -m scripts.build_verifier_steps --verified build/verified --teacher annotations \\
        --rows 4000 --output build/steps
"""

import argparse
from collections.abc import Sequence

from builders.benchmarks import BENCHMARKS
from builders.steps.build import build
from builders.steps.collect import MAX_LENGTH, StepsBuild
from builders.steps.composition import ROWS_PER_QUESTION, Composition
from builders.steps.model import INJECT, TRAJECTORY, known_maker
from builders.steps.rewriting import REWRITE, Rewriter, known_rewriter
from builders.steps.summary import summary
from builders.verified.teachers.choice import ANNOTATIONS, client_of, known_teacher, spending
from cards import verifier_steps as card
from safe_stepwise.errors import UserError, one_of
from safe_stepwise.store.names import VERIFIER_STEPS, known_version
from scripts.cli import (
    COUNT,
    FILE,
    FOLDER,
    NAMES,
    SEED,
    add_teacher,
    add_teacher_options,
    command,
    cores,
    run,
    share,
    warn,
)
from scripts.role_options import add_role_options


def main(arguments: Sequence[str]) -> None:
    """Build and print a summary; raises ``UserError`` for what the user can mend."""
    options = _parser().parse_args(arguments)
    plan = StepsBuild(
        verified=options.verified,
        output=options.output,
        composition=Composition(
            options.rows,
            options.questions,
            options.ideal,
            None if options.refined else 0,
            rows_per_question=options.rows_per_question,
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
    asked = (options.teacher, options.cache, options.in_flight, options.timeout)
    teachers = known_teacher(*asked, allowance=options.allowance)
    maker = known_maker(teachers, options.seed, unverifiable=options.unverifiable)
    rewriter = _rewriter(options)
    client = client_of(rewriter or maker)
    try:
        print(summary(plan, build(plan, maker, card.files, warn, rewriter)))
    finally:
        # Its account outlives the client, and is owed whatever came of the build.
        if spent := spending(client):
            print(spent)


def _rewriter(options: argparse.Namespace) -> Rewriter | None:
    if options.rewrite is None:
        return None
    if options.teacher != ANNOTATIONS:
        raise UserError(
            f"--rewrite rewords what the annotations say, not a model; leave it out, or --teacher "
            f"{ANNOTATIONS}"
        )
    asked = (options.rewrite, options.cache, options.in_flight, options.timeout)
    teachers = known_teacher(*asked, allowance=options.allowance, where="--rewrite")
    return known_rewriter(teachers, options.rewrite)


def _parser() -> argparse.ArgumentParser:
    parser = command(
        "build_verifier_steps", "Make the step-level verifier set from verified questions."
    )
    add = parser.add_argument
    add("--verified", **FOLDER, required=True, help="what build_verified wrote")
    add_teacher(parser, "mock:FILE to try things out")
    add("--rows", **COUNT, required=True, help="rows to choose; copies are then taken out of test")
    add("--output", **FOLDER, required=True, help=f"{VERIFIER_STEPS} goes there")
    add("--questions", **COUNT, help="of exactly N questions (default: any)")
    most = f"at most N rows of a question (default {ROWS_PER_QUESTION})"
    add("--rows-per-question", **COUNT, default=ROWS_PER_QUESTION, help=most)
    add("--ideal", type=share, default=0.34, metavar="SHARE", help="of correct steps (0.34)")
    add("--test-share", type=share, default=0.1, metavar="SHARE", help="of rows for test (0.1)")
    some = "one of those in --verified; may be repeated (default: all of them)"
    add("--benchmark", **NAMES, metavar="NAME", help=some)
    add("--refined", **FILE, help="of refine_verifier_steps: rows that join in")
    others = "of the questions that could not be verified instead; nothing checks their steps"
    add("--unverifiable", action="store_true", help=others)
    add(
        "--pool",
        **COUNT,
        help="try N questions of each split (default: one for 3 rows, 200 at least)",
    )
    add("--seed", **SEED, help="of every draw (default 0)")
    add("--version", default="v0.1.0", help="of the release, as of --verified (default v0.1.0)")
    add("--workers", **COUNT, default=cores(), help="default: all cores")
    counted = "count tokens with this one (name or folder); else bytes bound them"
    add("--tokenizer", metavar="NAME", help=counted)
    longest = f"tokens that a row may have (default {MAX_LENGTH})"
    add("--max-length", **COUNT, default=MAX_LENGTH, help=longest)
    model = add_teacher_options(parser)
    add_role_options(model, [p.role for p in (TRAJECTORY, INJECT, REWRITE)], [INJECT.role])
    reworded = (
        "a model that words the annotations' rows anew, where it says the same (--teacher specs)"
    )
    model.add_argument("--rewrite", metavar="SPEC", help=reworded)
    return parser


if __name__ == "__main__":
    run(main)
