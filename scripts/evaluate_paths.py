"""Measure a model's verdicts on valid and corrupted relation paths (safe-path-probe)."""

from evaluators.paths.command import run_paths
from safe_stepwise.methods.paths import roles
from scripts.cli import command, run

main = command(run_paths, roles=roles(), module=__name__)

if __name__ == "__main__":
    run(main)
