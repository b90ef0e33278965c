"""Put evaluations of the same questions into one table, such as the papers' ablations."""

from evaluators.joining.command import join
from scripts.cli import command, run

main = command(join, module=__name__)

if __name__ == "__main__":
    run(main)
