"""Train a model to write steps, by a recipe: the next ones, and rejected ones anew.

safe-stepwise train_generator --config trainers/recipes/small-generator.yaml ...
"""

from collections.abc import Sequence

from scripts.cli import run
from scripts.training_options import trained
from trainers.config import GeneratorRecipe


def main(arguments: Sequence[str]) -> None:
    """Train and print a summary; raises ``UserError`` for what the user can mend."""
    what = "Train a model to write steps from the ideal steps of a verifier's set, by a recipe."
    trained("train_generator", what, GeneratorRecipe, arguments)


if __name__ == "__main__":
    run(main)
