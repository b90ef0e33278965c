"""Make every dataset of a release manifest and lock the result with digests."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builders.work.executors import Submitted
from releases import making, stage
from releases.making import dry_run, refuse_missing
from releases.stage import Speed, read_expectations
from releases.stages import open_release
from safe_stepwise.commands.values import Count
from scripts.cli import command, cores, run


@dataclass(frozen=True, kw_only=True)
class Options(stage.Options):
    dry_run: bool = False
    gpu_prompt: Count
    gpu_reply: Count
    gpu_train: Count
    workers: Count = field(default_factory=cores)


def make(options: Options) -> str | None:
    """Make a release, check a complete one, or print its costs; return a summary."""
    release = open_release(options)
    if options.dry_run:
        print(dry_run(release, Speed(options.gpu_prompt, options.gpu_reply, options.gpu_train)), flush=True)
        refuse_missing(release)
        return None
    try:
        return making.make(release)
    except Submitted as message:
        return str(message)


def regenerate(manifest: Path, output: Path, **options: Any) -> str:
    """Make the release under ``output``, or check a complete one; return a summary.

    ``options`` are the other fields of `stage.Options`. Raises ``UserError`` for a bad manifest or source, and for a
    folder that differs from its lock; ``Submitted`` when a build was only handed to a scheduler.
    """
    return making.make(open_release(stage.Options(manifest=manifest, output=output, **options)))


main = command(make, **{f"gpu_{name}": speed for name, speed in read_expectations()["gpu"].items()})

if __name__ == "__main__":
    run(main)
