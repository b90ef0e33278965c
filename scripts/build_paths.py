"""Find the relation paths of questions over a knowledge graph, as rows to train a proposer on."""

from builders.paths.kg_build import build, summary
from builders.paths.kg_collect import PathsBuild
from builders.work.executors import Submitted
from cards.datasets import paths as card
from scripts.cli import command, cores, run


def build_paths(plan: PathsBuild) -> str:
    """Build the set and return a summary, or the message that a scheduler has the build."""
    try:
        return summary(plan, build(plan, card))
    except Submitted as message:
        return str(message)


main = command(build_paths, workers=cores())

if __name__ == "__main__":
    run(main)
