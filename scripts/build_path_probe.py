"""Make valid and corrupted relation paths of questions (safe-path-probe)."""

from builders.paths.build import build, summary
from builders.paths.sources import ProbeBuild
from cards.datasets import path_probe as card
from evaluators.derivations import read_derivations
from scripts.cli import command, run


@command
def main(plan: ProbeBuild) -> str:
    """Build the path probe and return a summary."""
    derivations = read_derivations(plan.derivations) if plan.derivations is not None else {}
    return summary(plan.output, build(plan, card, derivations))


if __name__ == "__main__":
    run(main)
