"""Make the step-level verifier set of verified questions: ideal steps, checked errors, verdicts.

    safe-stepwise build_verifier_steps --verified build/verified --teacher annotations \\
        --rows 4000 --output build/steps
"""

import argparse
from collections.abc import Sequence

from builders.steps.build import build
from builders.steps.collect import MAX_LENGTH, StepsBuild
from builders.steps.model import INJECT, TRAJECTORY, known_maker
from builders.steps.rewriting import REWRITE, Rewriter, known_rewriter
from builders.steps.statistics import summary
from builders.verified.teachers.choice import ANNOTATIONS, client_of, known_teacher, spending
from cards.datasets import verifier_steps as card
from safe_stepwise.errors import UserError
from safe_stepwise.methods.prompt_sets import PAPER, PROMPTS, PromptSet
from safe_stepwise.records import VERDICT_ORDERS
from safe_stepwise.store.names import VERIFIER_STEPS, known_version
from scripts.cli import COUNT, FOLDER, add_teacher, add_teacher_options, command, cores, run, warn
from scripts.role_options import add_role_options
from scripts.steps_options import add_composition, composition_of


def main(arguments: Sequence[str]) -> None:
    """Build and print a summary; raises ``UserError`` for what the user can mend."""
    options = _parser().parse_args(arguments)
    plan = StepsBuild(
        verified=options.verified,
        output=options.output,
        version=known_version(options.version),
        workers=options.workers,
        tokenizer=options.tokenizer,
        max_length=options.max_length,
        prompt_set=PromptSet(options.prompts, options.verdict_order),
        **composition_of(options),
    )
    asked = (options.teacher, options.cache, options.in_flight, options.timeout)
    teachers = known_teacher(*asked, allowance=options.allowance)
    prompts, unverifiable = options.prompts, plan.unverifiable
    maker = known_maker(teachers, plan.seed, unverifiable=unverifiable, prompts=prompts)
    rewriter = _rewriter(options)
    client = client_of(rewriter or maker)
    try:
        print(summary(plan.output, build(plan, maker, card, warn, rewriter)))
    finally:
        # Its account outlives the client, and is owed whatever came of the build.
        if spent := spending(client):
            print(spent)


def _rewriter(options: argparse.Namespace) -> Rewriter | None:
    if options.rewrite is None:
        return None
    if options.teacher != ANNOTATIONS:
        raise UserError(
            f"--rewrite rewords what the annotations say, not a model; leave it out, or --teacher {ANNOTATIONS}"
        )
    asked = (options.rewrite, options.cache, options.in_flight, options.timeout)
    teachers = known_teacher(*asked, allowance=options.allowance, where="--rewrite")
    return known_rewriter(teachers, options.rewrite)


def _parser() -> argparse.ArgumentParser:
    parser = command("build_verifier_steps", "Make the step-level verifier set from verified questions.")
    add = parser.add_argument
    add("--verified", **FOLDER, required=True, help="what build_verified wrote")
    add_teacher(parser, "mock:FILE to try things out")
    add("--output", **FOLDER, required=True, help=f"{VERIFIER_STEPS} goes there")
    add_composition(parser)
    add("--version", default="v0.1.0", help="of the release, as of --verified (default v0.1.0)")
    add("--workers", **COUNT, default=cores(), help="default: all cores")
    counted = "count tokens with this one (name or folder); else bytes bound them"
    add("--tokenizer", metavar="NAME", help=counted)
    longest = f"tokens that a row may have (default {MAX_LENGTH})"
    add("--max-length", **COUNT, default=MAX_LENGTH, help=longest)
    words = "of prompts and steps: the paper's length (default), or compact for small models"
    add("--prompts", choices=PROMPTS, default=PAPER.name, help=words)
    begins = "what a verdict begins with: its label (default) or its evidence"
    add("--verdict-order", choices=VERDICT_ORDERS, default=PAPER.verdict_order, help=begins)
    model = add_teacher_options(parser)
    add_role_options(model, [p.role for p in (TRAJECTORY, INJECT, REWRITE)], [INJECT.role])
    reworded = "a model that words the annotations' rows anew, where it says the same (--teacher specs)"
    model.add_argument("--rewrite", metavar="SPEC", help=reworded)
    return parser


if __name__ == "__main__":
    run(main)
