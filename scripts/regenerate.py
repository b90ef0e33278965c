"""Make everything that a release manifest names, and lock it with digests.

python -m scripts.regenerate scripts/releases/demo.yaml --output build/demo
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import platform
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from builders.steps.build import build as build_steps
from builders.steps.chunks import Maker
from builders.steps.collect import StepsBuild
from builders.steps.refinement import read_refined
from builders.steps.statistics import StepStatistics
from builders.verified.build import build
from builders.verified.collect import Build
from builders.verified.statistics import Statistics, libraries
from builders.verified.teachers import Teachers
from builders.work.folders import read_statistics
from builders.work.shards import Asker
from builders.work.slurm import Submitted
from cards import release as release_card
from cards import verifier_steps as steps_card
from safe_stepwise.errors import UserError
from safe_stepwise.store.code import code_digest
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.names import LOCK, VERIFIED, VERIFIER_STEPS
from scripts.build_verified import (
    CARDS,
    add_engine_options,
    engine_of,
    known_split,
)
from scripts.build_verifier_steps import summary as steps_summary
from scripts.cli import Parser, positive, run, table, warn
from scripts.manifest import ADAPTER, BuildEntry, Manifest, read_manifest
from scripts.planning import Speed, assumed_speed, foreseen, lacking, no_refined, told
from scripts.release_parts import (
    README,
    check_training,
    files,
    make_adapter,
    make_report,
    make_space,
    recipe_of,
)
from scripts.step_maker import known_maker
from scripts.teacher import add_teacher_options, known_teacher

"""Written last: a folder that has it is complete."""


def main(arguments: Sequence[str]) -> None:
    """Build, or check a complete folder; raises ``UserError`` for what the user can mend."""
    parser = Parser(
        prog="python -m scripts.regenerate",
        description="Make every dataset of a release manifest and lock the result with digests.",
        epilog=(
            "example:\n"
            "  python -m scripts.regenerate scripts/releases/demo.yaml --output build/demo\n\n"
            "keys of a manifest:\n"
            "  version: v0.1.0  seed: 1  evaluation_size: 1000 (if not said)\n"
            "  builds: a list of benchmark, input, split; and, if wanted, teacher (annotations),\n"
            "      sha256 (of the input), limit (rows), on_error (stop or keep),\n"
            "      expected_rows (of an input that is not here, for --dry-run)\n"
            "  verifier_steps: the verifier set, if wanted; scripts/releases/demo.yaml has one;\n"
            "      refined_from: FILE there adds what refine_verifier_steps found\n"
            "  adapter: recipe (a name of trainers/recipes, or a YAML file); verifier (what\n"
            "      measures it, as vllm:BASE+{adapter}, which stands for its folder)\n"
            "  evaluation: generator, verifier, judge (specs), methods, limit (questions)\n\n"
            "A complete folder is not built again: its files are checked against its lock."
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("manifest", type=Path, metavar="MANIFEST", help="YAML: version, seed, builds")
    add("--output", type=Path, required=True, metavar="DIR", help="datasets/ and the lock go there")
    add("--skip-training", action="store_true", help="leave out the adapter, and what needs it")
    add(
        "--dry-run",
        action="store_true",
        help="check every part and print the calls, tokens and GPU hours to expect; make nothing",
    )
    for name, value in asdict(assumed_speed()).items():
        told_of = {"prompt": "prompt tokens", "reply": "reply tokens", "train": "trained tokens"}
        add(
            f"--gpu-{name}",
            type=positive,
            default=round(value),
            metavar="N",
            help=f"{told_of[name]} a second of one GPU, for --dry-run (assumed: {value:,.0f})",
        )
    add_engine_options(parser)
    add_teacher_options(parser)
    options = parser.parse_args(arguments)
    if options.dry_run:
        speed = Speed(options.gpu_prompt, options.gpu_reply, options.gpu_train)
        print(dry_run(options.manifest, options.output, speed))
        return
    try:
        print(
            regenerate(
                options.manifest,
                options.output,
                functools.partial(known_teacher, cache=options.cache, in_flight=options.in_flight),
                functools.partial(known_maker, cache=options.cache, in_flight=options.in_flight),
                cache=options.cache,
                skip_training=options.skip_training,
                **engine_of(options),
            )
        )
    except Submitted as message:
        print(message)


def dry_run(manifest_file: Path, output: Path, speed: Speed) -> str:
    """What a release would take; raises ``UserError`` for the first part that is wrong.

    Sources that are at hand are read to the end, so a bad row or another digest shows here.
    """
    manifest = read_manifest(manifest_file)
    datasets = output / "datasets"
    _refuse_strangers(manifest, datasets)
    plans = [_plan(manifest, entry, datasets, known_teacher) for entry in manifest.builds]
    entry = manifest.verifier_steps
    if entry is not None and entry.refined_from is not None:
        read_refined(entry.refined_from)
    recipe = recipe_of(manifest, output) if manifest.recipe is not None else None
    report = told(foreseen(manifest, plans, recipe), speed)
    return "\n".join([report, *(f"still owed: {owed}" for owed in lacking(manifest, plans))])


def regenerate(
    manifest_file: Path,
    output: Path,
    teachers: Callable[[str], Teachers] = known_teacher,
    makers: Callable[[str, int], Maker] | None = None,
    cache: Path | None = None,
    skip_training: bool = False,
    **engine: Any,
) -> str:
    """Make the release under ``output``, or check it; returns what there is to say.

    ``teachers`` and ``makers`` make a manifest's teachers of their specs; ``engine`` are the fields
    of a `Build` that say where it runs, and change nothing in it.

    Raises ``UserError`` for a bad manifest or source, and for a folder that differs from its lock;
    ``Submitted`` when one of the builds was only handed to a scheduler.
    """
    manifest = read_manifest(manifest_file)
    lock = output / LOCK
    if lock.exists() and not _owes_training(lock, skip_training):
        number = check(manifest, output)
        return f"{output}: complete and unchanged ({number} files match {LOCK})"
    datasets = output / "datasets"
    _refuse_strangers(manifest, datasets)
    plans = [_plan(manifest, entry, datasets, teachers) for entry in manifest.builds]
    steps = _steps_plan(manifest, datasets, engine.get("workers", 1))
    entry = manifest.verifier_steps
    maker = None if entry is None else (makers or known_maker)(entry.teacher, manifest.seed)
    if entry is not None and entry.refined_from is not None:
        read_refined(entry.refined_from)  # a mistake in it shows before hours of work
    if unmined := no_refined(manifest):
        raise UserError(f"{manifest.path}: {unmined}")
    sources: list[Asker] = [plan.teacher for plan in plans]
    sources += [] if maker is None else [maker]
    skipped = _skipped(manifest, skip_training)
    try:
        for source in sources:
            source.check()
        if manifest.recipe is not None and "adapter" not in skipped:
            check_training(recipe_of(manifest, output))
        made = [build(replace(plan, **engine), CARDS) for plan in plans]
    finally:
        for source in sources:
            source.close()
    said, steps_made = [_overview(made)], None
    if steps is not None and maker is not None:
        steps_made = build_steps(steps, maker, steps_card.files, warn)
        said.append(steps_summary(steps, steps_made))
    shutil.rmtree(datasets / ".work", ignore_errors=True)
    said += _parts(manifest, output, skipped, [] if cache is None else ["--cache", str(cache)])
    record = _lock(manifest, output, made, steps_made) | {"skipped": skipped}
    overview = release_card.read_release(output, record)
    write_atomically(output / README, overview.encode())
    record["files"] = file_digests(output)
    content = json.dumps(record, indent=2, sort_keys=True) + "\n"
    write_atomically(lock, content.encode())
    return "\n\n".join([*said, f"{output / README}\n{lock}"])


def _skipped(manifest: Manifest, skip_training: bool) -> list[str]:
    """Parts that the manifest names and this run leaves out: the adapter, and what needs it."""
    if not skip_training or manifest.recipe is None:
        return []
    entry = manifest.evaluation
    needs_it = entry is not None and ADAPTER in f"{entry.generator} {entry.verifier} {entry.judge}"
    return ["adapter", "evaluation"] if needs_it else ["adapter"]


def _parts(manifest: Manifest, output: Path, skipped: Sequence[str], cache: list[str]) -> list[str]:
    """Make what there is beside the datasets; returns what there is to say."""
    make_space(output)
    said = [f"{part}: left out (--skip-training)" for part in skipped]
    if manifest.recipe is not None and "adapter" not in skipped:
        said.append(make_adapter(manifest, output, cache))
    if manifest.evaluation is not None and "evaluation" not in skipped:
        said.append(make_report(manifest, output, cache))
    return said


def _owes_training(lock: Path, skip_training: bool) -> bool:
    """Whether an earlier run left out what this one is to make."""
    left_out = json.loads(lock.read_text(encoding="utf-8")).get("skipped", [])
    return bool(left_out) and not skip_training


def check(manifest: Manifest, output: Path) -> int:
    """Compare a complete folder with its lock; returns how many files were compared.

    Raises ``UserError`` naming the first file that differs, is gone, or is too many.
    """
    lock = json.loads((output / LOCK).read_text(encoding="utf-8"))
    if lock["manifest"]["sha256"] != manifest.sha256:
        raise UserError(
            f"{output}: was made from another manifest ({lock['manifest']['name']}, "
            f"{lock['version']}); choose another --output, or delete that folder"
        )
    found = file_digests(output)
    for name in sorted({*lock["files"], *found}):
        if lock["files"].get(name) != found.get(name):
            state = "is missing" if name not in found else "differs"
            state = state if name in lock["files"] else "is not part of the release"
            raise UserError(
                f"{output / name}: {state}, says {LOCK}; delete {output} and run this again"
            )
    return len(found)


def file_digests(output: Path) -> dict[str, str]:
    """SHA-256 of every file of a release but its lock, by path relative to ``output``."""
    digests = {}
    for file in files(output):
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        digests[file.relative_to(output).as_posix()] = digest
    return digests


def _steps_plan(manifest: Manifest, datasets: Path, workers: int) -> StepsBuild | None:
    entry = manifest.verifier_steps
    if entry is None:
        return None
    return StepsBuild(
        verified=datasets,
        output=datasets,
        composition=entry.composition,
        test_share=entry.test_share,
        version=manifest.version,
        seed=manifest.seed,
        workers=workers,
        max_length=entry.max_length,
        pool=entry.pool,
        refined=entry.refined_from,
    )


def _refuse_strangers(manifest: Manifest, datasets: Path) -> None:
    """What the manifest does not name must not end up in its lock."""
    named = {(entry.benchmark, entry.split) for entry in manifest.builds}
    for made in read_statistics(datasets / VERIFIED):
        if (made["benchmark"], made["split"]) not in named:
            raise UserError(
                f"{datasets}: holds {made['benchmark']} {made['split']}, which {manifest.path} "
                "does not name; choose another --output"
            )
    if manifest.verifier_steps is None and (datasets / VERIFIER_STEPS).exists():
        raise UserError(
            f"{datasets}: holds {VERIFIER_STEPS}, which {manifest.path} does not name; choose "
            "another --output"
        )


def _plan(
    manifest: Manifest, entry: BuildEntry, datasets: Path, teachers: Callable[[str], Teachers]
) -> Build:
    beside = manifest.path.parent / entry.input
    return Build(
        benchmark=entry.benchmark,
        source=str(beside) if beside.exists() else entry.input,
        split=known_split(entry.split),
        output=datasets,
        teacher=teachers(entry.teacher),
        version=manifest.version,
        seed=manifest.seed,
        limit=entry.limit,
        keep_rejects=entry.on_error == "keep",
        evaluation_size=manifest.evaluation_size,
        sha256=entry.sha256,
        keep_work=True,
    )


def _lock(
    manifest: Manifest, output: Path, made: Sequence[Statistics], steps: StepStatistics | None
) -> dict[str, Any]:
    counts: dict[str, Any] = {
        f"{s.benchmark}-{s.split}": {
            "rows": s.rows,
            "verified": s.verified,
            "unverifiable": dict(s.unverifiable),
            "unparsed": s.unparsed,
            "rejected": s.rejected,
        }
        for s in made
    }
    if steps is not None:
        counts["verifier-steps"] = {
            "rows": steps.rows,
            "questions": steps.questions,
            "splits": steps.splits,
            "origins": steps.origins,
        }
    return {
        "manifest": {"name": manifest.path.name, "sha256": manifest.sha256},
        "version": manifest.version,
        "code_sha256": code_digest("scripts.regenerate", without=()),
        "libraries": {"python": platform.python_version(), **libraries()},
        "counts": counts,
        "files": file_digests(output),
    }


def _overview(made: Sequence[Statistics]) -> str:
    header = ("benchmark", "split", "rows", "verified", "unverifiable", "not judged", "rejected")
    rows = [
        (
            s.benchmark,
            s.split,
            s.rows,
            s.verified,
            sum(s.unverifiable.values()),
            s.unparsed,
            s.rejected,
        )
        for s in made
    ]
    return table([header, *rows])


if __name__ == "__main__":
    run(main)
