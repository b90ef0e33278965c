"""Train a verifier adapter with QLoRA, by a recipe."""

from scripts.cli import run
from scripts.training import TrainingCommand
from trainers.config import VerifierRecipe

main = TrainingCommand("train_verifier", __doc__, VerifierRecipe)

if __name__ == "__main__":
    run(main)
