"""Lay evaluations of the same questions side by side: the papers' ablation tables."""

from evaluators.joining.command import join
from scripts.cli import command, run

main = command(join, module=__name__)

if __name__ == "__main__":
    run(main)
