"""The release that is made: its manifest, its folder, and how models are asked and work is shared."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from builders.work.plans import ENGINES, Slurm
from builders.work.shards import Annotator
from releases.manifest import Manifest, read_manifest
from releases.paths_manifest import PathsManifest, read_paths
from safe_stepwise.commands.values import Count, Known, Seconds
from safe_stepwise.engines.client import IN_FLIGHT
from safe_stepwise.errors import UserError
from safe_stepwise.store.boundary import content_of, parse_yaml
from safe_stepwise.store.names import DATASETS, PATHS

M = TypeVar("M", Manifest, PathsManifest, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What stages are asked for."""

    manifest: Path
    output: Path
    only: Sequence[str] = ()
    """The parts to make, with what they need; all if none is named."""
    skip_training: bool = False
    cache: Path | None = None
    """The file of replies."""
    in_flight: Count = IN_FLIGHT
    timeout: Seconds | None = None
    workers: Count = 1
    engine: Annotated[str, Known(ENGINES)] = "local"
    ranks: Count | None = None
    slurm: Slurm = field(default_factory=Slurm)

    @property
    def engine_options(self) -> dict[str, Any]:
        """The fields of a build that say where it runs."""
        return {name: getattr(self, name) for name in ("workers", "engine", "ranks", "slurm")}


@dataclass(frozen=True)
class Release(Generic[M]):
    """What all stages of a release work on; ``sha256`` is the digest of the manifest's file."""

    options: Options
    manifest: M
    sha256: str
    opened: list[Annotator] = field(default_factory=list)
    """Who may hold models and connections."""

    @property
    def file(self) -> Path:
        """The manifest's file, with which errors begin."""
        return self.options.manifest

    @property
    def output(self) -> Path:
        """The folder that it is made in."""
        return self.options.output

    @property
    def datasets(self) -> Path:
        """Where its datasets go."""
        return self.output / DATASETS

    def close(self) -> None:
        """Let go of all teachers: what comes next may want their memory. The next use opens them again."""
        for annotator in self.opened:
            annotator.close()


def read_release(options: Options) -> Release[Any]:
    """The release of a manifest; raises ``UserError``, with its file, for one that can't be read."""
    content = content_of(options.manifest)
    try:
        values = parse_yaml(content)
        read = read_paths if isinstance(values, dict) and PATHS in values else read_manifest
        manifest: Any = read(values, options.manifest.parent)
    except (UserError, ValueError) as error:
        raise UserError(f"{options.manifest}: {error}") from None
    return Release(options, manifest, hashlib.sha256(content).hexdigest())
