"""Make everything that a release manifest names, and lock it with digests.

safe-stepwise regenerate scripts/releases/demo.yaml --output build/demo
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from builders.paths.build import build as build_probe
from builders.work.executors import Submitted
from releases.asked import Speed
from releases.manifest import read_manifest
from releases.needs import left_out
from releases.paths_manifest import of_paths, read_paths
from releases.planning import expectations, foreseen, lacking, told
from safe_stepwise.engines.client import IN_FLIGHT
from safe_stepwise.store.names import DATASETS
from scripts import evaluate_deliberation, release_foreseen, release_paths
from scripts.cli import COUNT, FOLDER, NAMES, add_teacher_options, command, run
from scripts.engine_options import add_engine_options, engine_of
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

SPEEDS = {"prompt": "prompt tokens", "reply": "reply tokens", "train": "trained tokens"}


def main(arguments: Sequence[str]) -> None:
    """Build, or check a complete folder; raises ``UserError`` for what the user can mend."""
    options = _parser().parse_args(arguments)
    which = {"skip_training": options.skip_training, "only": options.only}
    if options.dry_run:
        speed = Speed(options.gpu_prompt, options.gpu_reply, options.gpu_train)
        print(dry_run(options.manifest, options.output, speed, **which))
        if of_paths(options.manifest):
            release_foreseen.refuse_owed(options.manifest)
        return
    how = {name: getattr(options, name) for name in ("cache", "in_flight", "timeout")} | which
    try:
        print(regenerate(options.manifest, options.output, **how, **engine_of(options)))
    except Submitted as message:
        print(message)


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


def _parser() -> argparse.ArgumentParser:
    parser = command("regenerate", "Make every dataset of a release manifest and lock the result with digests.")
    add = parser.add_argument
    add("manifest", type=Path, metavar="MANIFEST", help="YAML: version, seed, builds")
    add("--output", **FOLDER, required=True, help="datasets/ and the lock go there")
    some = "make that block (or part: evaluation, ...) and what it needs, not the rest; repeatable"
    add("--only", **NAMES, metavar="BLOCK", help=some)
    add("--skip-training", action="store_true", help="leave out the adapter, and what needs it")
    foresee = "check every part and print the calls, tokens and GPU hours to expect; make nothing"
    add("--dry-run", action="store_true", help=foresee)
    for name, value in expectations()["gpu"].items():
        speed = f"{SPEEDS[name]} a second of one GPU, for --dry-run (assumed: {value:,})"
        add(f"--gpu-{name}", **COUNT, default=value, help=speed)
    add_engine_options(parser)
    add_teacher_options(parser)
    return parser


if __name__ == "__main__":
    run(main)
