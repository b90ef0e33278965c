"""Train a model to write reasoning steps, with a verifier set's ideal steps as targets, by a recipe."""

from scripts.cli import run
from scripts.training import TrainingCommand
from trainers.config import GeneratorRecipe

main = TrainingCommand("train_generator", __doc__, GeneratorRecipe)

if __name__ == "__main__":
    run(main)
