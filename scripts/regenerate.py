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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any

from builders.benchmarks import BENCHMARKS
from builders.collect import Build
from builders.executors import Submitted
from builders.folders import read_statistics
from builders.shards import code_digest, write_atomically
from builders.statistics import Statistics, libraries
from builders.teachers import Teachers
from builders.verified import VERIFIED, build
from safe_stepwise.errors import UserError
from scripts.build_verified import (
    CARDS,
    add_engine_options,
    engine_of,
    known_split,
    known_version,
)
from scripts.cli import Parser, one_of, run, table
from scripts.teacher import add_teacher_options, known_teacher

LOCK = "release.lock.json"
"""Written last: a folder that has it is complete."""


@dataclass(frozen=True, slots=True)
class BuildEntry:
    """One entry of ``builds``. ``input`` is a file beside the manifest, or any other source."""

    benchmark: str
    input: str
    split: str
    teacher: str = "annotations"
    sha256: str | None = None
    limit: int | None = None
    on_error: str = "stop"


@dataclass(frozen=True, slots=True)
class Manifest:
    """A release manifest; ``sha256`` is the file's own digest."""

    path: Path
    sha256: str
    version: str
    seed: int
    evaluation_size: int
    builds: tuple[BuildEntry, ...]


def main(arguments: Sequence[str]) -> None:
    """Build, or check a complete folder; raises ``UserError`` for what the user can mend."""
    parser = Parser(
        prog="python -m scripts.regenerate",
        description="Make every dataset of a release manifest and lock the result with digests.",
        epilog=(
            "example:\n"
            "  python -m scripts.regenerate scripts/releases/demo.yaml --output build/demo\n\n"
            "A complete folder is not built again: its files are checked against its lock."
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("manifest", type=Path, metavar="MANIFEST", help="YAML: version, seed, builds")
    add("--output", type=Path, required=True, metavar="DIR", help="datasets/ and the lock go there")
    add_engine_options(parser)
    add_teacher_options(parser)
    options = parser.parse_args(arguments)
    try:
        print(
            regenerate(
                options.manifest,
                options.output,
                functools.partial(known_teacher, cache=options.cache, in_flight=options.in_flight),
                **engine_of(options),
            )
        )
    except Submitted as message:
        print(message)


def regenerate(
    manifest_file: Path,
    output: Path,
    teachers: Callable[[str], Teachers] = known_teacher,
    **engine: Any,
) -> str:
    """Make the release under ``output``, or check it; returns what there is to say.

    ``teachers`` makes a manifest's teacher of its spec; ``engine`` are the fields of a `Build` that
    say where it runs, and change nothing in it.

    Raises ``UserError`` for a bad manifest or source, and for a folder that differs from its lock;
    ``Submitted`` when one of the builds was only handed to a scheduler.
    """
    manifest = read_manifest(manifest_file)
    lock = output / LOCK
    if lock.exists():
        number = check(manifest, output)
        return f"{output}: complete and unchanged ({number} files match {LOCK})"
    datasets = output / "datasets"
    _refuse_strangers(manifest, datasets)
    plans = [_plan(manifest, entry, datasets, teachers) for entry in manifest.builds]
    for plan in plans:
        plan.teacher.check()
    try:
        made = [build(replace(plan, **engine), CARDS) for plan in plans]
    finally:
        for plan in plans:
            plan.teacher.close()
    shutil.rmtree(datasets / ".work", ignore_errors=True)
    content = json.dumps(_lock(manifest, output, made), indent=2, sort_keys=True) + "\n"
    write_atomically(lock, content.encode())
    return f"{_overview(made)}\n\n{datasets}\n{lock}"


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
    """SHA-256 of every file below ``output/datasets``, by path relative to ``output``."""
    digests = {}
    for file in sorted((output / "datasets").rglob("*")):
        if file.is_file():
            with file.open("rb") as content:
                digest = hashlib.file_digest(content, "sha256").hexdigest()
            digests[file.relative_to(output).as_posix()] = digest
    return digests


def read_manifest(path: Path) -> Manifest:
    """Read a manifest strictly: ``UserError`` names the file and the key that is wrong."""
    import yaml

    try:
        content = path.read_bytes()
        values = yaml.safe_load(content)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not YAML ({error})") from None
    names = {"version": str, "seed": int, "evaluation_size": int, "builds": list}
    _check_keys(path, "", values, names, required=names)
    if not values["builds"]:
        raise UserError(f"{path}: builds: name at least one")
    if values["evaluation_size"] < 1:
        raise UserError(f"{path}: evaluation_size: has to be 1 or more")
    known_version(values["version"])
    builds = tuple(
        _entry(path, f"builds[{number}].", entry) for number, entry in enumerate(values["builds"])
    )
    for number, entry in enumerate(builds):
        if (entry.benchmark, entry.split) in {(b.benchmark, b.split) for b in builds[:number]}:
            raise UserError(f"{path}: builds[{number}]: {entry.benchmark} {entry.split} again")
    return Manifest(
        path=path,
        sha256=hashlib.sha256(content).hexdigest(),
        version=values["version"],
        seed=values["seed"],
        evaluation_size=values["evaluation_size"],
        builds=builds,
    )


def _entry(path: Path, where: str, values: Any) -> BuildEntry:
    names = {field.name: int if field.name == "limit" else str for field in fields(BuildEntry)}
    required = [field.name for field in fields(BuildEntry) if field.default is MISSING]
    _check_keys(path, where, values, names, required)
    entry = BuildEntry(**values)
    one_of(entry.benchmark, BENCHMARKS, f"{path}: {where}benchmark")
    one_of(entry.split, ("train", "validation"), f"{path}: {where}split")
    known_teacher(entry.teacher, where=f"{path}: {where}teacher")
    one_of(entry.on_error, ("stop", "keep"), f"{path}: {where}on_error")
    if entry.limit is not None and entry.limit < 1:
        raise UserError(f"{path}: {where}limit: has to be 1 or more")
    return entry


def _check_keys(
    path: Path, where: str, values: Any, types: Mapping[str, type], required: Sequence[str] | Any
) -> None:
    if not isinstance(values, dict):
        raise UserError(f"{path}: {where.rstrip('.') or 'the whole'}: has to be a mapping of keys")
    for key, value in values.items():
        one_of(str(key), types, f"{path}: key {where}{key}:")
        if not isinstance(value, types[key]) or isinstance(value, bool):
            raise UserError(f"{path}: {where}{key}: has to be of type {types[key].__name__}")
    for key in required:
        if key not in values:
            raise UserError(f"{path}: {where}{key}: is missing")


def _refuse_strangers(manifest: Manifest, datasets: Path) -> None:
    """What the manifest does not name must not end up in its lock."""
    named = {(entry.benchmark, entry.split) for entry in manifest.builds}
    for made in read_statistics(datasets / VERIFIED):
        if (made["benchmark"], made["split"]) not in named:
            raise UserError(
                f"{datasets}: holds {made['benchmark']} {made['split']}, which {manifest.path} "
                "does not name; choose another --output"
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


def _lock(manifest: Manifest, output: Path, made: Sequence[Statistics]) -> dict[str, Any]:
    counts = {
        f"{s.benchmark}-{s.split}": {
            "rows": s.rows,
            "verified": s.verified,
            "unverifiable": dict(s.unverifiable),
            "unparsed": s.unparsed,
            "rejected": s.rejected,
        }
        for s in made
    }
    return {
        "manifest": {"name": manifest.path.name, "sha256": manifest.sha256},
        "version": manifest.version,
        "code_sha256": code_digest(),
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
