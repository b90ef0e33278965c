"""Make a release stage by stage, and lock it: ``release.lock.json`` has the digest of every file.

A *stage* (`releases.stage`) makes one dataset, model or report; the stages of one name are a *part*, which the options
``--only`` and ``--skip-training`` make or leave out. A stage continues where an earlier run stopped. The lock is
written last: a folder that has one is complete, and `make` only compares its files with it. `dry_run` estimates costs.
"""

import json
import platform
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from builders.work.plans import libraries
from cards.releases import render_paths_folder, render_release_folder
from releases.lock import read_lock, refuse_changes
from releases.manifest import REFINEMENT, Manifest
from releases.paths_manifest import PathsManifest
from releases.report import pack
from releases.stage import COST_FIELDS, CostEstimate, Forecast, Release, Speed, Stage, add_costs
from releases.stages import left_out, modules, stages_of
from safe_stepwise.errors import UserError
from safe_stepwise.store import code, files, names
from safe_stepwise.store.tables import fill

MAKING = (names.DATASETS, names.SFT, names.GENERATOR, names.ADAPTER, names.SPACE, names.REPORT)
"""The folders that stages write into the release's folder, a block's, or an adapter's of a block."""
FOLDERS = (*MAKING, names.BLOCKS)
"""The folders of a release, whose files are locked."""
HIDDEN = (names.WORK, names.JOURNAL, *(f".{name}.old" for name in (*names.SETS, names.PATH_PROBE, names.PATHS_SETS)))
"""Patterns of the hidden names that stages keep at the top of `MAKING` while a release is made."""


def make(release: Release[Any]) -> str:
    """Make the parts of a release in order, or check a complete release; return a summary.

    A part that an earlier run with the same manifest and code made is kept, unless it follows a part that is made now.
    While a locked folder changes, its lock is kept with the unfinished work, from which a killed run can continue.
    Raises ``UserError`` if a stage lacks something, a complete folder differs from its lock, or a file is hidden;
    ``Submitted`` when a build was only handed to a scheduler.
    """
    output, stages = release.output, stages_of(release)
    skip = left_out(release, stages)
    locked = (output / names.LOCK).exists()
    folder = output if locked else output / names.WORK
    earlier = read_lock(folder, ("version", "files", "manifest")) if (folder / names.LOCK).exists() else None
    if locked and earlier is not None and set(earlier.get("skipped", [])) <= set(skip):
        return f"{output}: complete and unchanged ({check(release)} files match {names.LOCK})"
    kept_parts = _complete_parts(release, stages, skip, earlier, locked)
    pending = [stage for stage in stages if stage.name not in skip and stage.name not in kept_parts]
    try:
        for stage in pending:
            stage.check()
        with files.lock_folder(output, "run", (*FOLDERS, names.README, names.LOCK, names.WORK)):
            refuse_hidden(output, allowed=HIDDEN)
            if locked:
                (output / names.WORK).mkdir(exist_ok=True)
                (output / names.LOCK).replace(output / names.WORK / names.LOCK)
            counts = dict(earlier["counts"]) if earlier is not None and kept_parts else {}
            summaries = []
            for stage in pending:
                result = stage.make()
                release.close()
                summaries += [result.summary] if result.summary else []
                counts |= result.counts
            for home in _list_stage_folders(output):  # the files from which stages would have resumed
                shutil.rmtree(home / names.WORK, ignore_errors=True)
                (home / names.JOURNAL).unlink(missing_ok=True)
            pack(output)
            refuse_hidden(output)
            unmade = {name: option for name, option in skip.items() if name not in kept_parts}
            _lock(release, counts, sorted(unmade))
            (output / names.WORK / names.LOCK).unlink(missing_ok=True)
            if REFINEMENT not in skip:  # whose rounds a later run needs
                shutil.rmtree(output / names.WORK, ignore_errors=True)
    finally:
        release.close()
    return "\n\n".join([*summaries, *_describe(unmade, kept_parts), f"{output / names.README}\n{output / names.LOCK}"])


def release_code() -> str:
    return code.code_digest("releases.making", *modules(), excluded=())


def check(release: Release[Any]) -> int:
    """Compare a folder with its lock; return the number of files; raise ``UserError`` for the first that differs."""
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
    """Return the SHA-256 of every file of a release but its lock, by path relative to ``output``."""
    paths = [path for folder in FOLDERS for path in sorted((output / folder).rglob("*"))] + [output / names.README]
    return {path.relative_to(output).as_posix(): files.sha256_of(path) for path in paths if path.is_file()}


def refuse_hidden(output: Path, allowed: Collection[str] = ()) -> None:
    """Raise ``UserError`` for a hidden file or folder, unless a name ``allowed`` at the top of a stage's folder."""
    exempt = {path for folder in _list_stage_folders(output) for name in allowed for path in folder.glob(name)}
    for folder in FOLDERS:
        for path in sorted((output / folder).rglob(".*")):
            if not exempt & {path, *path.parents}:
                raise UserError(
                    f"{path}: what is hidden is no part of a release; remove it and run the same command again"
                )


def _complete_parts(
    release: Release[Any],
    stages: Sequence[Stage[Any]],
    skip: Mapping[str, str],
    earlier: Mapping[str, Any] | None,
    locked: bool,
) -> list[str]:
    """List the parts that need not be made again: none after a change of manifest or code."""
    if earlier is None:
        return []
    order = dict.fromkeys(stage.name for stage in stages)
    complete = [name for name in order if name not in earlier.get("skipped", [])]
    if earlier["manifest"]["sha256"] == release.sha256 and earlier.get("code_sha256") == release_code():
        if locked:
            check(release)
        new_parts = set(earlier.get("skipped", [])) - set(skip)
        stale = {stage.name for stage in stages if stage.remade_after in new_parts}
        return [name for name in complete if name not in stale]
    if outdated := [name for name in complete if name in skip]:
        raise UserError(
            f"{release.output}: {outdated[0]} was made there from another manifest, or by other code; name it "
            "too, choose another --output, or delete that folder"
        )
    return []


def _describe(skipped: Mapping[str, str], kept_parts: Sequence[str]) -> list[str]:
    """Return a line for each reason why parts were not made, with these parts."""
    by_option: dict[str, list[str]] = {}
    for name, option in skipped.items():
        by_option.setdefault(f"left out ({option})", []).append(name)
    if kept_parts:
        by_option["made before"] = [*kept_parts]
    return [f"{', '.join(members)}: {title}" for title, members in by_option.items()]


def _lock(release: Release[Any], counts: Mapping[str, Any], skipped: Sequence[str]) -> None:
    """Write the release's page and its lock; ``skipped`` are the parts that were not made."""
    output = release.output
    record = {
        "manifest": {"name": release.file.name, "sha256": release.sha256},
        "version": release.manifest.version,
        "code_sha256": release_code(),
        "libraries": {"python": platform.python_version(), **libraries()},
        "counts": counts,
        "skipped": skipped,
    }
    render = render_release_folder if isinstance(release.manifest, Manifest) else render_paths_folder
    files.write_atomically(output / names.README, render(output, record).encode())
    content = json.dumps({**record, "files": file_digests(output)}, indent=2, sort_keys=True)
    files.write_atomically(output / names.LOCK, f"{content}\n".encode())


def _list_stage_folders(output: Path) -> Iterator[Path]:
    """Yield the folders of `MAKING` in the release, its blocks and their adapters."""
    blocks = sorted((output / names.BLOCKS).glob("*"))
    for home in (output, *blocks, *(inner for block in blocks for inner in block.glob("*"))):
        yield from (home / folder for folder in MAKING)


def dry_run(release: Release[Any], speed: Speed) -> str:
    """Render a release's costs and missing files, with sources read through; raise ``UserError`` for a fault."""
    stages, forecast = stages_of(release), Forecast()
    skip = left_out(release, stages)
    costs: dict[tuple[str, str], list[CostEstimate]] = {}
    for stage in stages:
        stage.check_inputs()
    included = [stage for stage in stages if stage.name not in skip]
    prefaces = [preface for stage in included if (preface := stage.preface(forecast))]
    notes = dict[str, None]()
    for stage in included:
        for cost in stage.price(forecast):
            costs.setdefault((stage.name, cost.name), []).append(cost)
            notes |= {stage.note: None} if stage.note else {}
    priced = [(stage_name, add_costs(name, entries)) for (stage_name, name), entries in costs.items()]
    text = render_costs(priced, speed, getattr(release.manifest, "blocks", ()))
    missing = dict.fromkeys(line for stage in included for line in stage.missing())
    return "\n".join(["\n\n".join([*prefaces, text, *notes]), *(f"still owed: {line}" for line in missing)])


def refuse_missing(release: Release[Any]) -> None:
    """Raise ``UserError`` if sources of relation paths are missing or differ from the manifest's digests."""
    if not isinstance(release.manifest, PathsManifest):
        return
    if missing := [line for stage in stages_of(release) for line in stage.missing()]:
        raise UserError(
            f"{release.file}: {len(missing)} of {len(release.manifest.sources)} files that it is made from "
            "are still owed (the lines above say how to get each); bring them and run this again"
        )


def render_costs(priced: Sequence[tuple[str, CostEstimate]], speed: Speed, blocks: Collection[str] = ()) -> str:
    """Render costs by stage as a table with their sum, and a second table with the costs of each block."""
    header = ("prompt tokens", "of them computed", "reply tokens", "trained on", "GPU hours")
    costs = [cost for _, cost in priced]
    rows = [
        (f"{stage_name}: {cost.name}" if stage_name in blocks else cost.name, cost.rows, *_sum_costs([cost], speed))
        for stage_name, cost in priced
    ]
    parts = [("part", "rows", "calls", *header), *rows, ("total", "", *_sum_costs(costs, speed))]
    block_names = [name for name in blocks if any(stage_name == name for stage_name, _ in priced)]
    by_block = {"(no block)": [cost for stage_name, cost in priced if stage_name not in blocks]}
    by_block |= {name: [cost for stage_name, cost in priced if stage_name == name] for name in block_names}
    sums = [(name, *_sum_costs(block, speed)) for name, block in by_block.items()] if block_names else []
    values = {"parts": parts, "blocks": [("block", "calls", *header), *sums], "speed": speed}
    return fill(Path(__file__).parent / "templates", "costs.txt.jinja", **values).rstrip("\n")


def _sum_costs(costs: Sequence[CostEstimate], speed: Speed) -> tuple[object, ...]:
    """Sum the calls and tokens of costs; the GPU hours come last, as text."""
    hours = sum(cost.hours(speed) for cost in costs)
    return (*(sum(getattr(cost, count) for cost in costs) for count in (*COST_FIELDS, "trained")), f"{hours:,.1f}")
