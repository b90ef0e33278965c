"""Run methods and their players over questions, and score their answers."""

from builders.benchmarks import BENCHMARKS
from builders.verified.evaluation_questions import read
from evaluators.run.command import run_evaluation
from evaluators.run.options import Options
from evaluators.run.trial import SHOWN
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.scene import JUDGE
from scripts.cli import command, roles_of, run

ROLES = (*roles_of(name for method in METHODS.values() for name in method.prompts), JUDGE)


def evaluated(options: Options) -> str:
    """Evaluate; returns the summary, and raises ``UserError`` for what the user can mend."""
    return run_evaluation(options, read, BENCHMARKS)


main = command(evaluated, roles=ROLES, shown=SHOWN)

if __name__ == "__main__":
    run(main)
