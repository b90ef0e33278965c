"""Train a small encoder that labels steps as a verifier, by a recipe."""

from scripts.cli import run
from scripts.training import TrainingCommand
from trainers.config import EncoderRecipe

main = TrainingCommand("train_encoder", __doc__, EncoderRecipe)

if __name__ == "__main__":
    run(main)
