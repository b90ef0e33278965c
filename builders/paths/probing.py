"""What a build of the path probe is asked for."""

from dataclasses import dataclass
from pathlib import Path

from safe_stepwise.store.names import WORK


@dataclass(frozen=True, slots=True)
class ProbeBuild:
    """What to build; ``films`` and ``questions`` are MetaQA's files, both or neither."""

    verified: Path
    output: Path
    films: Path | None = None
    questions: Path | None = None
    derivations: Path | None = None
    benchmarks: tuple[str, ...] = ()
    """All that are there, if none is named."""
    limit: int | None = None
    """Questions of a benchmark."""
    version: str = "v0.1.0"
    seed: int = 0

    @property
    def work(self) -> Path:
        """Where unfinished work lies."""
        return self.output / WORK / "path-probe"
