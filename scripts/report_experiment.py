"""Write the report of a release that trains its own generator and verifier.

python -m scripts.report_experiment build/small --output docs
"""

from collections.abc import Sequence
from pathlib import Path

from builders.steps.probes import told_apart
from evaluators.experiment.experiment import read_experiment
from evaluators.experiment.page import write
from scripts.cli import FOLDER, command, run


def main(arguments: Sequence[str]) -> None:
    """Write page and figures; raises ``UserError`` for what the user can mend."""
    parser = command("report_experiment", "Write an experiment's report from its release folder.")
    parser.add_argument("release", type=Path, metavar="DIR", help="what scripts.regenerate made")
    parser.add_argument("--output", **FOLDER, required=True, help="for results.md and results/")
    options = parser.parse_args(arguments)
    print(write(read_experiment(options.release, told_apart), options.output))


if __name__ == "__main__":
    run(main)
