"""A release is made part by part, and locked: ``release.lock.json`` has the digest of every file.

Each part goes on where an earlier run of it was stopped. The lock is written last, so a folder that
has one is complete; then its files are compared with it, and nothing is made.
"""

import json
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from releases.lock import read_lock
from releases.manifest import Manifest
from releases.refining import PART as REFINEMENT
from safe_stepwise.errors import UserError
from safe_stepwise.store import locks
from safe_stepwise.store.files import sha256_of, write_atomically
from safe_stepwise.store.names import (
    ADAPTER,
    DATASETS,
    JOURNAL,
    LOCK,
    README,
    REPORT,
    SETS,
    SPACE,
    VERIFIER_STEPS,
    WORK,
)

FOLDERS = (DATASETS, ADAPTER, SPACE, REPORT)
"""What a release is made of, and locked."""
HIDDEN = (WORK, JOURNAL, *(f".{name}.old" for name in SETS))
"""What its parts keep at the top of those folders while it is made."""


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


def make(
    manifest: Manifest,
    output: Path,
    parts: Sequence[Part],
    skip: Collection[str],
    made_by: Mapping[str, Any],
    overview: Callable[[Path, Mapping[str, Any]], str],
) -> str:
    """Make the parts in their order but those to ``skip``; returns what there is to say.

    All are checked before the first is made. ``made_by`` says in the lock what made them,
    ``overview`` writes the README of the folder. Raises ``UserError`` for what a part can't do
    without, for a complete folder that differs from its lock, and for links and hidden files that
    are none of ours, which can't be released.
    """
    # An earlier run may have left out what this one is to make.
    if (output / LOCK).exists() and set(read_lock(output).get("skipped", [])) <= set(skip):
        number = check(manifest, output)
        return f"{output}: complete and unchanged ({number} files match {LOCK})"
    for part in parts:
        if part.name not in skip:
            part.check()
    with locks.exclusive(output, "run", (*FOLDERS, README, LOCK, WORK)):
        refuse_hidden(output, ours=HIDDEN)
        made = [
            Made(f"{part.name}: left out (--skip-training)") if part.name in skip else part.make()
            for part in parts
        ]
        _forget_work(output)
        refuse_hidden(output)
        _lock(manifest, output, made, [p.name for p in parts if p.name in skip], made_by, overview)
    said = (one.said for one in made)
    return "\n\n".join([*filter(None, said), f"{output / README}\n{output / LOCK}"])


def _lock(
    manifest: Manifest,
    output: Path,
    made: Sequence[Made],
    skipped: Sequence[str],
    made_by: Mapping[str, Any],
    overview: Callable[[Path, Mapping[str, Any]], str],
) -> None:
    record = {
        "manifest": {"name": manifest.path.name, "sha256": manifest.sha256},
        "version": manifest.version,
        **made_by,
        "counts": {name: count for one in made for name, count in one.counts.items()},
        "skipped": skipped,
    }
    write_atomically(output / README, overview(output, record).encode())
    content = json.dumps({**record, "files": file_digests(output)}, indent=2, sort_keys=True)
    write_atomically(output / LOCK, f"{content}\n".encode())


def check(manifest: Manifest, output: Path) -> int:
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
            raise UserError(
                f"{output / name}: {state}, says {LOCK}; delete {output} and run this again"
            )
    return len(found)


def file_digests(output: Path) -> dict[str, str]:
    """SHA-256 of every file of a release but its lock, by path relative to ``output``."""
    return {file.relative_to(output).as_posix(): sha256_of(file) for file in _files(output)}


def refuse_strangers(
    manifest: Manifest, datasets: Path, built: Sequence[Mapping[str, Any]]
) -> None:
    """Raise ``UserError`` for what the manifest does not name, and so must not be locked.

    ``built`` are the records of the builds that are in the folder ``datasets``.
    """
    named = {f"{entry.benchmark} {entry.split}" for entry in manifest.builds}
    there = [f"{made['benchmark']} {made['split']}" for made in built]
    if manifest.verifier_steps is None and (datasets / VERIFIER_STEPS).exists():
        there.append(VERIFIER_STEPS)
    for stranger in there:
        if stranger not in named:
            raise UserError(
                f"{datasets}: holds {stranger}, which {manifest.path} does not name; choose "
                "another --output"
            )


def left_out(manifest: Manifest, skip_training: bool) -> list[str]:
    """Parts that a run without training leaves out: the adapter, and what needs it."""
    if not skip_training or manifest.adapter is None:
        return []
    entry, steps = manifest.evaluation, manifest.verifier_steps
    rounds = [REFINEMENT] if steps is not None and steps.refinement is not None else []
    return rounds + (["adapter", "evaluation"] if entry and entry.needs_adapter else ["adapter"])


def refuse_hidden(output: Path, ours: Collection[str] = ()) -> None:
    """Raise ``UserError`` for a hidden file or folder, which nobody would see being published.

    ``ours`` may stand at the top of a release's folders.
    """
    for folder in FOLDERS:
        top = output / folder
        for path in sorted(top.rglob(".*")):
            kept = top / path.relative_to(top).parts[0]
            if kept.name not in ours:
                raise UserError(
                    f"{path}: what is hidden is no part of a release; remove it and run the same "
                    "command again"
                )


def _forget_work(output: Path) -> None:
    """Remove what parts kept to go on from."""
    shutil.rmtree(output / WORK, ignore_errors=True)
    for folder in FOLDERS:
        shutil.rmtree(output / folder / WORK, ignore_errors=True)
        (output / folder / JOURNAL).unlink(missing_ok=True)


def _files(output: Path) -> Iterator[Path]:
    """Every file of a release, in order; its lock aside."""
    for folder in FOLDERS:
        yield from sorted(path for path in (output / folder).rglob("*") if path.is_file())
    if (output / README).is_file():
        yield output / README
