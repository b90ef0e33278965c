"""Run methods with the given models over questions, and score their answers."""

from builders.benchmarks import BENCHMARKS
from builders.verified.evaluation_questions import read
from evaluators.run.command import run_evaluation
from evaluators.run.options import Options
from evaluators.run.trial import PROBED_ROLES
from safe_stepwise.methods import METHODS, scene
from scripts.cli import command, roles_of, run

ROLES = (*roles_of(name for method in METHODS.values() for name in method.prompts), scene.JUDGE)


def evaluate(options: Options) -> str:
    """Run the evaluation and return its summary; raise ``UserError`` for a mistake of the user."""
    return run_evaluation(options, read, BENCHMARKS)


main = command(evaluate, roles=ROLES, example_roles=PROBED_ROLES)

if __name__ == "__main__":
    run(main)
