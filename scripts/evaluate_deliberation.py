"""Answer questions over a knowledge graph by relation paths, and score the answers."""

from builders.paths.questions import Questions
from evaluators.deliberation.command import run_deliberation
from evaluators.deliberation.options import Options
from safe_stepwise.methods import path_proposing, path_recall
from safe_stepwise.methods.path_deliberating import PROMPTS
from scripts.cli import command, roles_of, run


def evaluate(options: Options) -> str:
    """Run the evaluation and return its summary; raise ``UserError`` for a mistake of the user."""
    return run_deliberation(options, Questions.of_options)


ROLES = roles_of((*path_proposing.PROMPTS, *PROMPTS, path_recall.PROMPT))
main = command(evaluate, roles=ROLES, example_roles=roles_of(PROMPTS))

if __name__ == "__main__":
    run(main)
