"""Train an adapter that proposes relation paths, by a recipe: SFT first, then KTO.

safe-stepwise train_paths --config trainers/recipes/dp-sft-smollm2-cpu.yaml ...
"""

from collections.abc import Sequence

from scripts.cli import run
from scripts.training_options import trained
from trainers.config import PathRecipe


def main(arguments: Sequence[str]) -> None:
    """Train and print a summary; raises ``UserError`` for what the user can mend."""
    what = "Train an adapter that proposes relation paths with LoRA, by a recipe."
    trained("train_paths", what, PathRecipe, arguments)


if __name__ == "__main__":
    run(main)
