"""A release is made part by part, and locked: ``release.lock.json`` has the digest of every file.

Each part goes on where an earlier run of it was stopped. The lock is written last, so a folder that
has one is complete; then its files are compared with it, and nothing is made.
"""

import json
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from releases.lock import read_lock
from releases.manifest import Manifest
from releases.refining import PART as REFINEMENT
from releases.report import pack
from safe_stepwise.errors import UserError
from safe_stepwise.store import files
from safe_stepwise.store.files import sha256_of, write_atomically
from safe_stepwise.store.names import (
    ADAPTER,
    BLOCKS,
    DATASETS,
    GENERATOR,
    JOURNAL,
    LOCK,
    PATH_PROBE,
    PATHS_SETS,
    README,
    REPORT,
    SETS,
    SFT,
    SPACE,
    VERIFIER_STEPS,
    WORK,
)

MAKING = (DATASETS, SFT, GENERATOR, ADAPTER, SPACE, REPORT)
"""Folders that parts write; in a block's, and in that of one of its adapters, too."""
FOLDERS = (*MAKING, BLOCKS)
"""What a release is made of, and locked."""
_LOCKED = ("version", "files", "manifest")
HIDDEN = (WORK, JOURNAL, *(f".{name}.old" for name in (*SETS, PATH_PROBE, PATHS_SETS)))
"""What its parts keep at the top of those folders while it is made, as patterns of names."""


class Named(Protocol):
    """What a manifest of any kind has."""

    @property
    def path(self) -> Path:
        """The file."""

    @property
    def sha256(self) -> str:
        """Of the file."""

    @property
    def version(self) -> str:
        """Of the release."""


@dataclass(frozen=True, slots=True)
class Made:
    """What came of a part: what there is to say, and what the lock counts."""

    said: str = ""
    counts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Part:
    """Something to make; ``check`` raises ``UserError`` beforehand if it could not be made."""

    name: str
    make: Callable[[], Made]
    check: Callable[[], object] = lambda: None
    follows: str = ""
    """A part without which it is made otherwise: once that is made, it is made again."""


def make(
    manifest: Named,
    output: Path,
    parts: Sequence[Part],
    skip: Mapping[str, str],
    made_by: Mapping[str, Any],
    overview: Callable[[Path, Mapping[str, Any]], str],
) -> str:
    """Make the parts in their order but those to ``skip``; returns what there is to say.

    ``skip`` has the option that leaves out each of them. All parts are checked before the first is
    made. What an earlier run with the same manifest and code made stays, and is not made again,
    unless it follows a part that is made now. While a locked folder changes, its lock lies
    with the unfinished work, so that a run that was killed meanwhile goes on as it would have.
    ``made_by`` says in the lock what made them, ``overview`` writes the README of the folder.

    Raises ``UserError`` for what a part can't do without, for a complete folder that differs from
    its lock, and for links and hidden files that are none of ours, which can't be released.
    """
    locked = (output / LOCK).exists()
    place = output if locked else output / WORK
    before = read_lock(place, _LOCKED) if (place / LOCK).exists() else None
    if locked and before is not None and set(before.get("skipped", [])) <= set(skip):
        number = check(manifest, output)
        return f"{output}: complete and unchanged ({number} files match {LOCK})"
    stays = _made_before(manifest, output, parts, skip, made_by, before, locked)
    owed = [part for part in parts if part.name not in skip and part.name not in stays]
    for part in owed:
        part.check()
    with files.exclusive(output, "run", (*FOLDERS, README, LOCK, WORK)):
        refuse_hidden(output, ours=HIDDEN)
        if locked:
            (output / WORK).mkdir(exist_ok=True)
            (output / LOCK).replace(output / WORK / LOCK)
        made = [part.make() for part in owed]
        _forget_work(output)
        pack(output)
        refuse_hidden(output)
        left = {name: why for name, why in skip.items() if name not in stays}
        counts = dict(before["counts"]) if before is not None and stays else {}
        counts |= {name: count for one in made for name, count in one.counts.items()}
        _lock(manifest, output, counts, sorted(left), made_by, overview)
        _forget_rounds(output, skip)
    said = [one.said for one in made if one.said]
    return "\n\n".join([*said, *_told(left, stays), f"{output / README}\n{output / LOCK}"])


def _made_before(
    manifest: Named,
    output: Path,
    parts: Sequence[Part],
    skip: Mapping[str, str],
    made_by: Mapping[str, Any],
    before: Mapping[str, Any] | None,
    locked: bool,
) -> list[str]:
    """The parts that need not be made again.

    With another manifest or other code that is none, and nothing may be there but what is asked
    for. A folder that was being changed, so that it is not ``locked``, is compared with nothing.
    """
    if before is None:
        return []
    made = [part.name for part in parts if part.name not in before.get("skipped", [])]
    alike = before["manifest"]["sha256"] == manifest.sha256
    if alike and before.get("code_sha256") == made_by.get("code_sha256"):
        if locked:
            check(manifest, output)
        late = set(before.get("skipped", [])) - set(skip)
        stale = {part.name for part in parts if part.follows in late}
        return [name for name in made if name not in stale]
    if other := [name for name in made if name in skip]:
        raise UserError(
            f"{output}: {other[0]} was made there from another manifest, or by other code; name it "
            "too, choose another --output, or delete that folder"
        )
    return []


def _told(left: Mapping[str, str], stays: Sequence[str]) -> list[str]:
    """What was not made, and why."""
    by_option: dict[str, list[str]] = {}
    for name, why in left.items():
        by_option.setdefault(f"left out ({why})", []).append(name)
    if stays:
        by_option["made before"] = [*dict.fromkeys(stays)]
    return [f"{', '.join(names)}: {what}" for what, names in by_option.items()]


def _lock(
    manifest: Named,
    output: Path,
    counts: Mapping[str, Any],
    skipped: Sequence[str],
    made_by: Mapping[str, Any],
    overview: Callable[[Path, Mapping[str, Any]], str],
) -> None:
    record = {
        "manifest": {"name": manifest.path.name, "sha256": manifest.sha256},
        "version": manifest.version,
        **made_by,
        "counts": counts,
        "skipped": skipped,
    }
    write_atomically(output / README, overview(output, record).encode())
    content = json.dumps({**record, "files": file_digests(output)}, indent=2, sort_keys=True)
    write_atomically(output / LOCK, f"{content}\n".encode())


def check(manifest: Named, output: Path) -> int:
    """Compare a complete folder with its lock; returns how many files were compared.

    Raises ``UserError`` naming the first file that differs, is gone, or is too many.
    """
    lock = read_lock(output, ("version", "files", "manifest"))
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
            raise UserError(f"{output / name}: {state}, says {LOCK}; delete {output} and run this again")
    return len(found)


def file_digests(output: Path) -> dict[str, str]:
    """SHA-256 of every file of a release but its lock, by path relative to ``output``."""
    return {file.relative_to(output).as_posix(): sha256_of(file) for file in _files(output)}


def refuse_strangers(manifest: Manifest, datasets: Path, built: Sequence[Mapping[str, Any]]) -> None:
    """Raise ``UserError`` for what the manifest does not name, and so must not be locked.

    ``built`` are the records of the builds that are in the folder ``datasets``.
    """
    named = {f"{entry.benchmark} {entry.split}" for entry in manifest.builds}
    there = [f"{made['benchmark']} {made['split']}" for made in built]
    if manifest.verifier_steps is None and (datasets / VERIFIER_STEPS).exists():
        there.append(VERIFIER_STEPS)
    if manifest.path_probe is None and (datasets / PATH_PROBE).exists():
        there.append(PATH_PROBE)
    blocks = datasets.parent / BLOCKS
    there += [f"{BLOCKS}/{p.name}" for p in blocks.glob("*") if p.name not in manifest.blocks]
    for stranger in there:
        if stranger not in named:
            raise UserError(
                f"{datasets}: holds {stranger}, which {manifest.path} does not name; choose another --output"
            )


def refuse_hidden(output: Path, ours: Collection[str] = ()) -> None:
    """Raise ``UserError`` for a hidden file or folder, which nobody would see being published.

    ``ours`` may stand at the top of the folders that parts write.
    """
    kept = {path for top in _tops(output) for name in ours for path in top.glob(name)}
    for folder in FOLDERS:
        for path in sorted((output / folder).rglob(".*")):
            if not kept & {path, *path.parents}:
                raise UserError(
                    f"{path}: what is hidden is no part of a release; remove it and run the same command again"
                )


def _forget_rounds(output: Path, skip: Collection[str]) -> None:
    """Remove the lock of before, and rounds of refinement unless another run goes on with them."""
    (output / WORK / LOCK).unlink(missing_ok=True)
    if REFINEMENT not in skip:
        shutil.rmtree(output / WORK, ignore_errors=True)


def _forget_work(output: Path) -> None:
    """Remove what parts kept to go on from."""
    for top in _tops(output):
        shutil.rmtree(top / WORK, ignore_errors=True)
        (top / JOURNAL).unlink(missing_ok=True)


def _tops(output: Path) -> Iterator[Path]:
    """Every folder that a part may write: the release's own, its blocks', their adapters'."""
    blocks = sorted((output / BLOCKS).glob("*"))
    for home in (output, *blocks, *(inner for block in blocks for inner in block.glob("*"))):
        yield from (home / folder for folder in MAKING)


def _files(output: Path) -> Iterator[Path]:
    """Every file of a release, in order; its lock aside."""
    for folder in FOLDERS:
        yield from sorted(path for path in (output / folder).rglob("*") if path.is_file())
    if (output / README).is_file():
        yield output / README
