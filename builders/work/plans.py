"""What every build is asked for, beside what is its dataset's own."""

from dataclasses import dataclass, field
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated, ClassVar

import safe_stepwise
from safe_stepwise.commands.values import Count, Known, Version
from safe_stepwise.store.names import WORK

ENGINES = ("local", "datatrove-local", "slurm", "ray")
"""Who makes a build's shards: processes of this command, or ranks of datatrove, Slurm, Ray."""


@dataclass(frozen=True, slots=True)
class Slurm:
    """Where and how long; any other option is an environment variable, say ``SBATCH_ACCOUNT``."""

    partition: str | None = None
    time: str = "24:00:00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Where to build, which version, and who works; a dataset's own plan says the rest."""

    output: Path
    version: Version = "v0.1.0"
    seed: int = 0
    limit: Count | None = None
    """Rows of each source, if not all."""
    workers: Count = 1
    """Processes of this machine; how many ranks a cluster runs at once is its own affair."""
    engine: Annotated[str, Known(ENGINES)] = "local"
    ranks: Count | None = None
    """Parts of the work, for the other engines; as many as workers if not said."""
    slurm: Slurm = field(default_factory=Slurm)
    keep_rejects: bool = False
    """Whether rows that cannot be read are kept apart, and the first of them does not end the build."""
    keep_work: bool = False
    """Leave the shards after success too, for a caller with more builds to do."""

    work_name: ClassVar[str]
    """The folder of unfinished work, below the output's, with fields of the ``plan`` in braces."""

    @property
    def work(self) -> Path:
        """Where unfinished work lies."""
        return self.output / WORK / self.work_name.format(plan=self)


def libraries() -> dict[str, str]:
    """Versions of what decides on the bytes and the labels."""
    packages = ("datasets", "huggingface_hub", "networkx", "pyarrow", "sentencex")
    installed = {package: installed_version(package) for package in packages}
    return {"safe-stepwise": safe_stepwise.__version__, **installed}
