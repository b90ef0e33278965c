"""Train a verifier adapter by a recipe.

safe-stepwise train_verifier --config trainers/recipes/smollm2-cpu.yaml ...
"""

from collections.abc import Sequence

from scripts.cli import run
from scripts.training_options import trained
from trainers.config import VerifierRecipe

NAME = "train_verifier"


def main(arguments: Sequence[str]) -> None:
    """Train and print a summary; raises ``UserError`` for what the user can mend."""
    trained(NAME, "Train a verifier adapter with QLoRA, by a recipe.", VerifierRecipe, arguments)


if __name__ == "__main__":
    run(main)
