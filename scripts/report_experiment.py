"""Write an experiment's report from its release folder."""

from dataclasses import dataclass
from pathlib import Path

from builders.steps.probes import classify
from releases.lock import read_unchanged
from scripts.cli import command, run
from studies.experiment.experiment import Experiment, read_experiment, require_same_models
from studies.experiment.page import write_report


@dataclass(frozen=True, kw_only=True)
class Options:
    release: Path
    output: Path
    fresh: Path | None = None
    """A release with the same models on questions that nobody saw during development; claims are tested there, too."""


@command
def main(options: Options) -> str:
    """Write page and figures, and return the page's path; raise ``UserError`` for a mistake of the user."""
    experiment, fresh = _read(options.release), None
    if options.fresh is not None:
        fresh = _read(options.fresh)
        require_same_models(fresh, experiment, f"{options.fresh}")
    return str(write_report(experiment, options.output, fresh))


def _read(folder: Path) -> Experiment:
    return read_experiment(folder, read_unchanged(folder), classify)


if __name__ == "__main__":
    run(main)
