"""Write an evaluation's traces as one HTML page that needs nothing else.

safe-stepwise view_traces build/results
"""

from collections.abc import Sequence

from evaluators.traces.page import PAGE, write
from scripts.cli import FILE, FOLDER, command, run


def main(arguments: Sequence[str]) -> None:
    """Write the page; raises ``UserError`` for what the user can mend."""
    parser = command("view_traces", (__doc__ or "").partition("\n")[0])
    evaluated = "the --output of evaluate_stepwise or evaluate_deliberation"
    parser.add_argument("folder", **FOLDER, help=evaluated)
    parser.add_argument("--output", **FILE, help=f"default DIR/{PAGE}")
    options = parser.parse_args(arguments)
    output = options.output or options.folder / PAGE
    count = write(options.folder, output)
    print(f"{count:,} trajectories, {output.stat().st_size / 1e6:.1f} MB; open it in a browser:")
    print(output)


if __name__ == "__main__":
    run(main)
