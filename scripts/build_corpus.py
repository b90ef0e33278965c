"""Write the passages of a benchmark's rows as a corpus to search."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from builders.benchmarks import BENCHMARKS
from builders.benchmarks.sources import canonical_split
from builders.corpus.passages import CorpusBuild, build, summary
from builders.verified.collect import Build
from builders.verified.teachers.annotations import AnnotationsTeacher
from safe_stepwise.commands.values import Count, Name
from safe_stepwise.errors import UserError
from scripts.cli import command, run


@dataclass(frozen=True, kw_only=True)
class Options:
    benchmark: Sequence[Annotated[str, Name(BENCHMARKS)]]
    input: Sequence[str]
    split: Sequence[Annotated[str, canonical_split]]
    output: Path
    limit: Count | None = None

    @property
    def sources(self) -> list[Build]:
        """The inputs as builds; ``benchmark`` and ``split`` have one value for all inputs, or one for each."""
        benchmarks, splits = (self._repeat_value(name) for name in ("benchmark", "split"))
        return [
            Build(benchmark, source, split, AnnotationsTeacher, output=self.output.parent, limit=self.limit)
            for source, benchmark, split in zip(self.input, benchmarks, splits, strict=True)
        ]

    def _repeat_value(self, name: str) -> Sequence[str]:
        values: Sequence[str] = getattr(self, name)
        inputs = len(self.input)
        if len(values) not in (1, inputs):
            raise UserError(
                f"--{name} is given {len(values)} times, --input {inputs} times: "
                "give it once for all, or once for each"
            )
        return [*values] * inputs if len(values) == 1 else values


@command
def main(options: Options) -> str:
    """Build the corpus and return a summary."""
    plan = CorpusBuild(options.sources, options.output)
    return summary(plan, build(plan))


if __name__ == "__main__":
    run(main)
