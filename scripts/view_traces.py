"""Write an evaluation's traces as one HTML page that needs nothing else.

python -m scripts.view_traces build/results
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from evaluators.traces.page import PAGE, write
from scripts.cli import Parser, run

EXAMPLES = """
examples:
  python -m scripts.view_traces build/results                        # build/results/traces.html
  python -m scripts.view_traces build/results --output traces.html   # to send to somebody

The page holds all questions, passages, steps, feedback and costs, and loads nothing: it can be
opened from disk, sent, or put behind any web server.

exit status: 0 done, 2 something to mend (one line says what), 1 a fault of ours
"""


def main(arguments: Sequence[str]) -> None:
    """Write the page; raises ``UserError`` for what the user can mend."""
    parser = Parser(
        prog="python -m scripts.view_traces",
        description=(__doc__ or "").partition("\n")[0],
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "folder",
        type=Path,
        metavar="DIR",
        help="the --output of python -m scripts.evaluate_stepwise",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help=f"default DIR/{PAGE}")
    options = parser.parse_args(arguments)
    output = options.output or options.folder / PAGE
    count = write(options.folder, output)
    print(f"{count:,} trajectories, {output.stat().st_size / 1e6:.1f} MB; open it in a browser:")
    print(output)


if __name__ == "__main__":
    run(main)
