"""What a build of the path probe is asked for."""

from dataclasses import dataclass
from pathlib import Path

from builders.work.plans import Plan


@dataclass(frozen=True, slots=True)
class ProbeBuild(Plan):
    """What to build; ``films`` and ``questions`` are MetaQA's files, both or neither."""

    verified: Path
    films: Path | None = None
    questions: Path | None = None
    derivations: Path | None = None
    benchmarks: tuple[str, ...] = ()
    """All that are there, if none is named."""

    @property
    def work_name(self) -> str:
        """The folder of unfinished work."""
        return "path-probe"
