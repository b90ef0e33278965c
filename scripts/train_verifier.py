"""Train a verifier adapter with QLoRA, by a recipe."""

from scripts.cli import run
from scripts.training import Training
from trainers.config import VerifierRecipe

main = Training("train_verifier", __doc__, VerifierRecipe)

if __name__ == "__main__":
    run(main)
