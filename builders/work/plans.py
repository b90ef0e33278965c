"""The options that every build has; a dataset's own plan adds its own."""

from dataclasses import dataclass, field
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated, ClassVar

import safe_stepwise
from safe_stepwise.commands.values import Count, Name, Version
from safe_stepwise.store.names import WORK

ENGINES = ("local", "datatrove-local", "slurm", "ray")
"""Who makes a build's shards: processes of this command, or ranks of datatrove, Slurm, Ray."""


@dataclass(frozen=True, slots=True)
class Slurm:
    """Slurm's partition and time limit; other options are environment variables, such as ``SBATCH_ACCOUNT``."""

    partition: str | None = None
    time: str = "24:00:00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Where to build, which version, and which engine works; a dataset's own plan adds the rest."""

    output: Path
    version: Version = "v0.1.0"
    seed: int = 0
    limit: Count | None = None
    workers: Count = 1
    engine: Annotated[str, Name(ENGINES)] = "local"
    ranks: Count | None = None
    slurm: Slurm = field(default_factory=Slurm)
    keep_rejects: bool = False
    keep_work: bool = False
    """Whether the shards stay after success, for a caller with more builds to do."""

    work_name: ClassVar[str]
    """The folder of unfinished work, below the output's, with fields of the ``plan`` in braces."""

    @property
    def work(self) -> Path:
        """The folder of this build's unfinished work."""
        return self.output / WORK / self.work_name.format(plan=self)


def libraries(*further: str) -> dict[str, str]:
    """Return the versions of the packages that the bytes and the labels depend on."""
    packages = ("datasets", "huggingface_hub", "networkx", "pyarrow", "sentencex", *further)
    installed = {package: installed_version(package) for package in packages}
    return {"safe-stepwise": safe_stepwise.__version__, **installed}
