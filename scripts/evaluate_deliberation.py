"""Answer questions over a knowledge graph by relation paths, and score the answers."""

from builders.paths.questions import Questions
from evaluators.deliberation.command import run_deliberation
from evaluators.deliberation.options import Options
from safe_stepwise.methods.path_deliberating import PROMPTS
from scripts.cli import command, roles_of, run


def evaluated(options: Options) -> str:
    """Evaluate; returns the summary, and raises ``UserError`` for what the user can mend."""
    return run_deliberation(options, Questions.of_options)


main = command(evaluated, roles=roles_of(("deliberation/propose", *PROMPTS)), shown=roles_of(PROMPTS))

if __name__ == "__main__":
    run(main)
