"""A release is made part by part, and locked: ``release.lock.json`` has the digest of every file.

Each stage goes on where an earlier run of it was stopped. The lock is written last, so a folder that
has one is complete; then its files are compared with it, and nothing is made.
"""

import json
import platform
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from builders.work.plans import libraries
from cards.releases import read_paths_release, read_release
from releases.lock import read_lock, refuse_changes
from releases.manifest import REFINEMENT, Manifest
from releases.paths_manifest import PathsManifest
from releases.report import pack
from releases.stage import COUNTED, Cost, Forecast, Release, Speed, Stage, add_costs
from releases.stages import left_out, modules, stages_of
from safe_stepwise.errors import UserError
from safe_stepwise.store import files, names
from safe_stepwise.store.code import code_digest
from safe_stepwise.store.files import sha256_of, write_atomically
from safe_stepwise.store.tables import text_table

MAKING = (names.DATASETS, names.SFT, names.GENERATOR, names.ADAPTER, names.SPACE, names.REPORT)
"""Folders that stages write; in a block's, and in that of one of its adapters, too."""
FOLDERS = (*MAKING, names.BLOCKS)
"""What a release is made of, and locked."""
HIDDEN = (names.WORK, names.JOURNAL, *(f".{name}.old" for name in (*names.SETS, names.PATH_PROBE, names.PATHS_SETS)))
"""What its stages keep at the top of those folders while it is made, as patterns of names."""


def make(release: Release[Any]) -> str:
    """Make the parts in their order but those left out, or check a complete release; returns what there is to say.

    All stages are checked before the first is made. What an earlier run with the same manifest and
    code made stays, and is not made again, unless it follows a part that is made now. While a locked
    folder changes, its lock lies with the unfinished work, so that a run that was killed meanwhile
    goes on as it would have.

    Raises ``UserError`` for what a stage can't do without, for a complete folder that differs from
    its lock, and for links and hidden files that are none of ours, which can't be released;
    ``Submitted`` when a build was only handed to a scheduler.
    """
    output, stages = release.output, stages_of(release)
    skip = left_out(release, stages)
    locked = (output / names.LOCK).exists()
    place = output if locked else output / names.WORK
    before = read_lock(place, ("version", "files", "manifest")) if (place / names.LOCK).exists() else None
    if locked and before is not None and set(before.get("skipped", [])) <= set(skip):
        return f"{output}: complete and unchanged ({check(release)} files match {names.LOCK})"
    stays = _made_before(release, stages, skip, before, locked)
    owed = [stage for stage in stages if stage.name not in skip and stage.name not in stays]
    try:
        for stage in owed:
            stage.check()
        with files.exclusive(output, "run", (*FOLDERS, names.README, names.LOCK, names.WORK)):
            refuse_hidden(output, ours=HIDDEN)
            if locked:
                (output / names.WORK).mkdir(exist_ok=True)
                (output / names.LOCK).replace(output / names.WORK / names.LOCK)
            counts = dict(before["counts"]) if before is not None and stays else {}
            summaries = []
            for stage in owed:
                made = stage.make()
                release.close()
                summaries += [made.summary] if made.summary else []
                counts |= made.counts
            _forget_work(output)
            pack(output)
            refuse_hidden(output)
            left = {name: why for name, why in skip.items() if name not in stays}
            _lock(release, counts, sorted(left))
            _forget_rounds(output, skip)
    finally:
        release.close()
    return "\n\n".join([*summaries, *_unmade(left, stays), f"{output / names.README}\n{output / names.LOCK}"])


def release_code() -> str:
    """Digest of all the code that makes releases."""
    return code_digest("releases.making", *modules(), without=())


def check(release: Release[Any]) -> int:
    """Compare a complete folder with its lock; returns how many files were compared.

    Raises ``UserError`` naming the first file that differs, is gone, or is too many.
    """
    output = release.output
    lock = read_lock(output, ("version", "files", "manifest"))
    if lock["manifest"]["sha256"] != release.sha256:
        raise UserError(
            f"{output}: was made from another manifest ({lock['manifest']['name']}, "
            f"{lock['version']}); choose another --output, or delete that folder"
        )
    digests = file_digests(output)
    refuse_changes(output, lock, digests, f"delete {output} and run this again")
    return len(digests)


def file_digests(output: Path) -> dict[str, str]:
    """SHA-256 of every file of a release but its lock, by path relative to ``output``."""
    by_folder = [sorted(path for path in (output / folder).rglob("*") if path.is_file()) for folder in FOLDERS]
    every = [path for paths in by_folder for path in paths] + [output / names.README] * (
        output / names.README
    ).is_file()
    return {file.relative_to(output).as_posix(): sha256_of(file) for file in every}


def refuse_hidden(output: Path, ours: Collection[str] = ()) -> None:
    """Raise ``UserError`` for a hidden file or folder, which nobody would see being published.

    ``ours`` may stand at the top of the folders that stages write.
    """
    kept = {path for top in _tops(output) for name in ours for path in top.glob(name)}
    for folder in FOLDERS:
        for path in sorted((output / folder).rglob(".*")):
            if not kept & {path, *path.parents}:
                raise UserError(
                    f"{path}: what is hidden is no part of a release; remove it and run the same command again"
                )


def _made_before(
    release: Release[Any],
    stages: Sequence[Stage[Any]],
    skip: Mapping[str, str],
    before: Mapping[str, Any] | None,
    locked: bool,
) -> list[str]:
    """The parts that need not be made again.

    With another manifest or other code that is none, and nothing may be there but what is asked
    for. A folder that was being changed, so that it is not ``locked``, is compared with nothing.
    """
    if before is None:
        return []
    parts = dict.fromkeys(stage.name for stage in stages)
    made = [name for name in parts if name not in before.get("skipped", [])]
    if before["manifest"]["sha256"] == release.sha256 and before.get("code_sha256") == release_code():
        if locked:
            check(release)
        late = set(before.get("skipped", [])) - set(skip)
        stale = {stage.name for stage in stages if stage.follows in late}
        return [name for name in made if name not in stale]
    if others := [name for name in made if name in skip]:
        raise UserError(
            f"{release.output}: {others[0]} was made there from another manifest, or by other code; name it "
            "too, choose another --output, or delete that folder"
        )
    return []


def _unmade(left: Mapping[str, str], stays: Sequence[str]) -> list[str]:
    """What was not made, and why."""
    by_option: dict[str, list[str]] = {}
    for name, why in left.items():
        by_option.setdefault(f"left out ({why})", []).append(name)
    if stays:
        by_option["made before"] = [*stays]
    return [f"{', '.join(parts)}: {what}" for what, parts in by_option.items()]


def _lock(release: Release[Any], counts: Mapping[str, Any], skipped: Sequence[str]) -> None:
    output = release.output
    record = {
        "manifest": {"name": release.file.name, "sha256": release.sha256},
        "version": release.manifest.version,
        "code_sha256": release_code(),
        "libraries": {"python": platform.python_version(), **libraries()},
        "counts": counts,
        "skipped": skipped,
    }
    overview = read_release if isinstance(release.manifest, Manifest) else read_paths_release
    write_atomically(output / names.README, overview(output, record).encode())
    content = json.dumps({**record, "files": file_digests(output)}, indent=2, sort_keys=True)
    write_atomically(output / names.LOCK, f"{content}\n".encode())


def _forget_rounds(output: Path, skip: Collection[str]) -> None:
    """Remove the lock of before, and rounds of refinement unless another run goes on with them."""
    (output / names.WORK / names.LOCK).unlink(missing_ok=True)
    if REFINEMENT not in skip:
        shutil.rmtree(output / names.WORK, ignore_errors=True)


def _forget_work(output: Path) -> None:
    """Remove what stages kept to go on from."""
    for top in _tops(output):
        shutil.rmtree(top / names.WORK, ignore_errors=True)
        (top / names.JOURNAL).unlink(missing_ok=True)


def _tops(output: Path) -> Iterator[Path]:
    """Every folder that a stage may write: the release's own, its blocks', their adapters'."""
    blocks = sorted((output / names.BLOCKS).glob("*"))
    for home in (output, *blocks, *(inner for block in blocks for inner in block.glob("*"))):
        yield from (home / folder for folder in MAKING)


def dry_run(release: Release[Any], speed: Speed) -> str:
    """What a release would take; raises ``UserError`` for the first part that is wrong.

    Sources that are at hand are read to the end, so a bad row or another digest shows here.
    """
    stages, forecast = stages_of(release), Forecast()
    skip = left_out(release, stages)
    costs: dict[tuple[str, str], list[Cost]] = {}
    for stage in stages:
        stage.look()
    made = [stage for stage in stages if stage.name not in skip]
    prefaces = [preface for stage in made if (preface := stage.preface(forecast))]
    notes = dict[str, None]()
    for stage in made:
        for cost in stage.price(forecast):
            costs.setdefault((stage.name, cost.name), []).append(cost)
            notes |= {stage.note: None} if stage.note else {}
    parts = [(part, add_costs(name, same)) for (part, name), same in costs.items()]
    text = render_costs(parts, speed, getattr(release.manifest, "blocks", ()))
    owed = dict.fromkeys(line for stage in made for line in stage.owed())
    return "\n".join(["\n\n".join([*prefaces, text, *notes]), *(f"still owed: {line}" for line in owed)])


def refuse_owed(release: Release[Any]) -> None:
    """Raise ``UserError`` if a dry run had to say that files of relation paths are missing, or are others."""
    if not isinstance(release.manifest, PathsManifest):
        return
    if owed := [line for stage in stages_of(release) for line in stage.owed()]:
        raise UserError(
            f"{release.file}: {len(owed)} of {len(release.manifest.sources)} files that it is made from "
            "are still owed (the lines above say how to get each); bring them and run this again"
        )


def render_costs(parts: Sequence[tuple[str, Cost]], speed: Speed, blocks: Collection[str] = ()) -> str:
    """Costs by part as a table, with their sum, and below it what each of ``blocks`` takes."""
    header = ("prompt tokens", "of them computed", "reply tokens", "trained on", "GPU hours")
    costs = [cost for _, cost in parts]
    rows = [
        (f"{part}: {cost.name}" if part in blocks else cost.name, cost.rows, *_sums([cost], speed))
        for part, cost in parts
    ]
    tables = [text_table([("part", "rows", "calls", *header), *rows, ("total", "", *_sums(costs, speed))])]
    if priced := [name for name in blocks if any(part == name for part, _ in parts)]:
        by_block = {"(no block)": [cost for part, cost in parts if part not in blocks]}
        by_block |= {name: [cost for part, cost in parts if part == name] for name in priced}
        sums = [(name, *_sums(block, speed)) for name, block in by_block.items()]
        tables.append(text_table([("block", "calls", *header), *sums]))
        tables.append("What an earlier part asks in the same words is counted there.")
    return "\n\n".join(
        [
            *tables,
            "Calls and tokens are upper bounds where a model labels a benchmark, elsewhere what "
            "the papers' models and prompts take (small ones differ several times); GPU hours "
            f"are those at {speed.prompt:,.0f} prompt, {speed.reply:,.0f} reply and "
            f"{speed.train:,.0f} trained tokens a second of one GPU (--gpu-prompt, --gpu-reply, "
            "--gpu-train).",
        ]
    )


def _sums(costs: Sequence[Cost], speed: Speed) -> tuple[object, ...]:
    """Calls, tokens and GPU hours of parts together."""
    hours = sum(cost.hours(speed) for cost in costs)
    return (*(sum(getattr(cost, what) for cost in costs) for what in (*COUNTED, "trained")), f"{hours:,.1f}")
