"""Precision and recall of the graph-based checker on errors worded as it has not seen them.

safe-stepwise measure_checker --verified build/verified
"""

from collections.abc import Sequence

from builders.steps.held_back import UNSEEN, probed, read_wordings
from builders.verified.lookup import labelled
from safe_stepwise.store.tables import table
from scripts.cli import FILE, FOLDER, command, run
from studies.labels.agreement import checker_rows, told_of_ideal


def main(arguments: Sequence[str]) -> None:
    """Print the table; raises ``UserError`` for what the user can mend."""
    parser = command("measure_checker", "Score the graph-based checker on injected errors it was not developed on.")
    add = parser.add_argument
    add("--verified", **FOLDER, required=True, help="an --output of build_verified")
    add("--wordings", **FILE, default=UNSEEN, help="how errors are worded")
    add("--seed", type=int, default=1, metavar="N", help="of the errors (default 1)")
    options = parser.parse_args(arguments)
    words = read_wordings(options.wordings)
    for benchmark, rows in labelled(options.verified):
        pairs, ideal = probed(rows, options.seed, words)
        print(f"{table(checker_rows(benchmark, pairs))}\n{told_of_ideal(ideal)}\n")


if __name__ == "__main__":
    run(main)
