"""Run methods and their players over questions, and score their answers.

    safe-stepwise evaluate_stepwise --questions build/verified --method no_verification \\
        --method safe --generator SPEC --verifier SPEC --judge SPEC --output build/results
"""

import argparse
from collections.abc import Sequence
from functools import partial

from builders.benchmarks import BENCHMARKS
from builders.verified.evaluation_questions import read
from evaluators.comparison import report
from evaluators.faithfulness import command as faithfulness
from evaluators.faithfulness.tables import FILES as PAGES
from evaluators.run.command import Rooms, run_evaluation
from evaluators.run.options import SHOWN, Options
from safe_stepwise.checking.faithfulness.judging import judge_chain
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.running import AT_ONCE
from safe_stepwise.methods.scene import JUDGE
from safe_stepwise.store.names import RESULTS, TRAJECTORIES
from scripts.cli import COUNT, FOLDER, Parser, add_published, add_teacher_options, command, run
from scripts.loop_options import add_loop_options, add_prompting_options
from scripts.question_options import add_question_options
from scripts.role_options import add_role_options, roles_of

ROOMS = Rooms(
    read,
    {name: benchmark.SCORING for name, benchmark in BENCHMARKS.items()},
    lambda *asked: report.write(*asked).results,
    partial(faithfulness.as_it_ends, judge_chain),
    faithfulness.OWNED,
    (*report.FILES, *PAGES),
)
ROLES = (*roles_of(name for method in METHODS.values() for name in method.prompts), JUDGE)


def main(arguments: Sequence[str]) -> None:
    """Evaluate and print a summary; raises ``UserError`` for what the user can mend."""
    print(evaluated(Options(**vars(_parser().parse_args(arguments)))))


def evaluated(options: Options) -> str:
    """Evaluate; returns the summary, and raises as `main` does."""
    return run_evaluation(options, ROOMS)


def _parser() -> Parser:
    parser = command("evaluate_stepwise", (__doc__ or "").partition("\n")[0])
    parser.argument_default = argparse.SUPPRESS  # the defaults are those of `Options`
    add = parser.add_argument
    add("--questions", required=True, metavar="DIR|FILE|HUB-ID@REV", help="see below")
    add("--output", **FOLDER, required=True, help=f"for {TRAJECTORIES}, {RESULTS}")
    methods = f"{', '.join(METHODS)}; may be repeated"
    add("--method", action="append", required=True, metavar="M", help=methods)
    add("--generator", action="append", metavar="SPEC", help="writes the steps; may be repeated")
    judges = "judges them, where the method has one; may be repeated"
    add("--verifier", action="append", metavar="SPEC", help=judges)
    add("--player", action="append", metavar="ROLE=SPEC", help="plays a method's other role")
    add("--judge", metavar="SPEC", help="says whether an answer means the reference (Acc)")
    add_question_options(parser)
    add_loop_options(parser)
    add_prompting_options(parser)
    how = parser.add_argument_group("how")
    add = how.add_argument
    add("--judge-repeats", **COUNT, help="verdicts an answer (default 1)")
    add("--judge-all", action="store_true", help="also ask about exact matches")
    add("--seed", type=int, metavar="N", help="of the bootstrap, and of passages drawn (default 0)")
    add_published(parser)
    add("--at-once", **COUNT, help=f"questions under way (default {AT_ONCE})")
    add_role_options(add_teacher_options(parser), ROLES, SHOWN)
    return parser


if __name__ == "__main__":
    run(main)
