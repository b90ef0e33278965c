"""Train a model to write steps from the ideal steps of a verifier's set, by a recipe."""

from scripts.cli import run
from scripts.training import Training
from trainers.config import GeneratorRecipe

main = Training("train_generator", __doc__, GeneratorRecipe)

if __name__ == "__main__":
    run(main)
