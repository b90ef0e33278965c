"""Run methods with the given models over questions, and score their answers."""

from functools import partial

from builders.benchmarks import BENCHMARKS
from builders.paths.relation_readers import READERS
from builders.paths.sources import read_chain_questions
from builders.verified.evaluation_questions import read
from evaluators.run.command import run_evaluation
from evaluators.run.options import Options
from evaluators.run.trial import PROBED_ROLES
from safe_stepwise.methods import METHODS, scene
from scripts.cli import command, roles_of, run

ROLES = (*roles_of(name for method in METHODS.values() for name in method.prompts), scene.JUDGE)


def evaluate(options: Options) -> str:
    """Run the evaluation and return its summary; raise ``UserError`` for a mistake of the user."""
    is_over_graph = options.kb is not None or any(name in READERS for name in options.benchmark)
    return run_evaluation(options, partial(read_chain_questions, options.kb) if is_over_graph else read, BENCHMARKS)


main = command(evaluate, roles=ROLES, example_roles=PROBED_ROLES)

if __name__ == "__main__":
    run(main)
