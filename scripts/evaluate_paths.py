"""Measure a model's verdicts on relation paths, valid and corrupted (safe-path-probe)."""

from evaluators.paths.command import Options, run_paths
from safe_stepwise.methods.paths import roles
from scripts.cli import command, run


def evaluated(options: Options) -> str:
    """Measure and write; returns the summary, and raises ``UserError`` for what the user can mend."""
    return run_paths(options)


main = command(evaluated, roles=roles())

if __name__ == "__main__":
    run(main)
