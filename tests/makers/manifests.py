"""A release's manifest, and its parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from releases import stages
from releases.stage import Options, Release


def release_of(file: Path, output: Path | None = None, **options: Any) -> Release[Any]:
    """The release of a manifest, of which nothing is made."""
    return stages.open_release(Options(manifest=file, output=output or file.with_name("out"), **options))


def manifest_of(file: Path) -> Any:
    """What a manifest says."""
    return release_of(file).manifest


def needs(file: Path) -> dict[str, set[str]]:
    """What each part of a release needs."""
    return stages.needs_by_part(stages.stages_of(release_of(file)))


def left_out(file: Path, **options: Any) -> dict[str, str]:
    """The parts that a run leaves out."""
    release = release_of(file, **options)
    return stages.left_out(release, stages.stages_of(release))
