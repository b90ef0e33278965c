"""Lay evaluations of the same questions side by side: the papers' ablation tables."""

from evaluators.joining.command import Options, join
from scripts.cli import command, run


@command
def main(options: Options) -> str:
    """Join; returns a summary, and raises ``UserError`` for what the user can mend."""
    return join(options)


if __name__ == "__main__":
    run(main)
