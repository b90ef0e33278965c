"""Make every dataset of a release manifest and lock the result with digests."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from builders.paths.build import build as build_probe
from builders.work.executors import Submitted
from builders.work.plans import ENGINES, Slurm
from releases.asked import Speed
from releases.manifest import read_manifest
from releases.needs import left_out
from releases.paths_manifest import of_paths, read_paths
from releases.planning import expectations, foreseen, lacking, told
from safe_stepwise.commands.values import Count, Known, Seconds
from safe_stepwise.engines.client import IN_FLIGHT
from safe_stepwise.store.names import DATASETS
from scripts import evaluate_deliberation, release_foreseen, release_paths
from scripts.cli import command, cores, run
from scripts.evaluate_stepwise import evaluated
from scripts.release_costs import source_of
from scripts.release_datasets import made_by, released
from scripts.release_deliberation import deliberation_parts
from scripts.release_models import model_parts
from scripts.release_plans import KNOWN, build_plans, check_plans, foreseen_trainings
from scripts.release_probe import probe_parts
from scripts.release_proposer import card_parts, proposer_parts
from scripts.release_sets import sets
from scripts.release_sources import KNOWN as KNOWN_PATHS


@dataclass(frozen=True, kw_only=True)
class Options:
    manifest: Path
    output: Path
    only: Sequence[str] = ()
    skip_training: bool = False
    dry_run: bool = False
    gpu_prompt: Count
    gpu_reply: Count
    gpu_train: Count
    cache: Path | None = None
    in_flight: Count = IN_FLIGHT
    timeout: Seconds | None = None
    workers: Count = field(default_factory=cores)
    engine: Annotated[str, Known(ENGINES)] = "local"
    ranks: Count | None = None
    slurm: Slurm = field(default_factory=Slurm)


def make(options: Options) -> str | None:
    """Build, or check a complete folder; returns what there is to say."""
    which: dict[str, Any] = {"skip_training": options.skip_training, "only": options.only}
    if options.dry_run:
        speed = Speed(options.gpu_prompt, options.gpu_reply, options.gpu_train)
        text = dry_run(options.manifest, options.output, speed, **which)
        if of_paths(options.manifest):
            print(text, flush=True)
            release_foreseen.refuse_owed(options.manifest)
            return None
        return text
    names = ("cache", "in_flight", "timeout", "workers", "engine", "ranks", "slurm")
    how: dict[str, Any] = {name: getattr(options, name) for name in names}
    try:
        return regenerate(options.manifest, options.output, **how, **which)
    except Submitted as message:
        return str(message)


def regenerate(
    manifest_file: Path, output: Path, *, cache: Path | None = None, timeout: float | None = None, **options: Any
) -> str:
    """Make the release under ``output``, or check it; ``options`` are those of `released`.

    Returns what there is to say. Raises ``UserError`` for a bad manifest or source, and for a
    folder that differs from its lock; ``Submitted`` as `released`.
    """
    if of_paths(manifest_file):
        return _paths(manifest_file, output, cache=cache, timeout=timeout, **options)
    manifest = read_manifest(manifest_file, KNOWN)
    models = model_parts(manifest, output, cache, evaluated, timeout)
    others = [*probe_parts(manifest, output, build_probe), *models]
    return released(manifest, output, sets, others, cache=cache, timeout=timeout, **options)


def _paths(manifest_file: Path, output: Path, *, in_flight: int = IN_FLIGHT, **told: Any) -> str:
    """The same of relation paths."""
    manifest = read_paths(manifest_file, KNOWN_PATHS)
    asking = {"in_flight": in_flight, "cache": told.pop("cache"), "timeout": told.pop("timeout")}
    measured = deliberation_parts(manifest, output, evaluate_deliberation.evaluated, **asking)
    others = [*proposer_parts(manifest, output), *measured, *card_parts(manifest, output)]
    return release_paths.released(manifest, output, others, made_by(), **told)


def dry_run(manifest_file: Path, output: Path, speed: Speed, **which: Any) -> str:
    """What a release would take; raises ``UserError`` for the first part that is wrong.

    ``which`` are the options of `left_out`. Sources that are at hand are read to the end, so a bad
    row or another digest shows here.
    """
    if of_paths(manifest_file):
        return release_foreseen.dry_run(manifest_file, output, speed, **which)
    manifest = read_manifest(manifest_file, KNOWN)
    skip = left_out(manifest, **which)
    check_plans(manifest, output)
    sources = [source_of(plan) for plan in build_plans(manifest, output / DATASETS)]
    costs = foreseen(manifest, sources, list(foreseen_trainings(manifest)), skip)
    report = told(costs, speed, manifest.blocks)
    owed = lacking(manifest, sources, skip)
    return "\n".join([report, *(f"still owed: {one}" for one in owed)])


main = command(make, **{f"gpu_{name}": speed for name, speed in expectations()["gpu"].items()})

if __name__ == "__main__":
    run(main)
