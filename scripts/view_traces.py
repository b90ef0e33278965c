"""Write an evaluation's traces as one self-contained HTML page."""

from dataclasses import dataclass
from pathlib import Path

from evaluators.traces.page import PAGE, write
from scripts.cli import command, run


@dataclass(frozen=True, kw_only=True)
class Options:
    folder: Path
    output: Path | None = None


@command
def main(options: Options) -> str:
    """Write the page; return its number of trajectories, size and place."""
    output = options.output or options.folder / PAGE
    count = write(options.folder, output)
    size = output.stat().st_size / 1e6
    return f"{count:,} trajectories, {size:.1f} MB; open it in a browser:\n{output}"


if __name__ == "__main__":
    run(main)
