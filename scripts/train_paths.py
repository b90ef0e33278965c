"""Train an adapter that proposes relation paths with LoRA, by a recipe: SFT first, then KTO."""

from scripts.cli import run
from scripts.training import TrainingCommand
from trainers.config import PathRecipe

main = TrainingCommand("train_paths", __doc__, PathRecipe)

if __name__ == "__main__":
    run(main)
