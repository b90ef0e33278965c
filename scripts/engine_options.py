"""Where a build runs: options of the commands that build. None changes a byte of the result."""

import argparse
from typing import Any

from builders.work.plans import ENGINES, Slurm
from safe_stepwise.errors import one_of
from scripts.cli import COUNT, cores


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """Add them."""
    add = parser.add_argument
    add("--workers", **COUNT, default=cores(), help="default: all cores")
    add("--engine", default="local", metavar="NAME", help=f"{', '.join(ENGINES)} (default local)")
    parts = "parts that another engine cuts the work into (default: as many as workers)"
    add("--ranks", **COUNT, help=parts)
    slurm = parser.add_argument_group("on Slurm", "other options: SBATCH_ACCOUNT and its like")
    slurm.add_argument("--slurm-partition", metavar="NAME", help="default: $SBATCH_PARTITION")
    time = Slurm().time
    slurm.add_argument("--slurm-time", default=time, metavar="TIME", help=f"default {time}")


def engine_of(options: argparse.Namespace) -> dict[str, Any]:
    """What `add_engine_options` was given, as fields of a `Build`."""
    return {
        "workers": options.workers,
        "engine": one_of(options.engine, ENGINES, "--engine"),
        "ranks": options.ranks,
        "slurm": Slurm(options.slurm_partition, options.slurm_time),
    }
