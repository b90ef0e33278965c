"""Write the report of a release that trains its own generator and verifier.

safe-stepwise report_experiment build/small --output build/small-report
"""

from collections.abc import Sequence
from pathlib import Path

from builders.steps.probes import told_apart
from releases.lock import unchanged
from scripts.cli import FOLDER, command, run
from studies.experiment.experiment import Experiment, refuse_others
from studies.experiment.page import write
from studies.experiment.reading import read_experiment

_FRESH = (
    "a release with the same models on questions that nobody looked at while they were developed: "
    "the claims are measured there, too"
)


def main(arguments: Sequence[str]) -> None:
    """Write page and figures; raises ``UserError`` for what the user can mend."""
    parser = command("report_experiment", "Write an experiment's report from its release folder.")
    parser.add_argument("release", type=Path, metavar="DIR", help="what safe-stepwise regenerate made")
    parser.add_argument("--fresh", type=Path, metavar="DIR", help=_FRESH)
    parser.add_argument("--output", **FOLDER, required=True, help="for results.md and results/")
    options = parser.parse_args(arguments)
    found, fresh = _read(options.release), None
    if options.fresh is not None:
        fresh = _read(options.fresh)
        refuse_others(fresh, found, f"{options.fresh}")
    print(write(found, options.output, fresh))


def _read(folder: Path) -> Experiment:
    return read_experiment(folder, unchanged(folder), told_apart)


if __name__ == "__main__":
    run(main)
