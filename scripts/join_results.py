"""Lay evaluations of the same questions side by side: the papers' ablation tables."""

from dataclasses import dataclass
from pathlib import Path

from evaluators.joining.command import join
from scripts.cli import command, run, warn


@dataclass(frozen=True, kw_only=True)
class Options:
    folders: tuple[str, ...]
    output: Path
    reference: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    seed: int = 0


@command
def main(options: Options) -> str:
    """Join; returns a summary, and raises ``UserError`` for what the user can mend."""
    return join(options.folders, options.output, warn, options.reference, options.published, options.seed)


if __name__ == "__main__":
    run(main)
