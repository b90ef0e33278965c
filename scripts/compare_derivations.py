"""Measure HotpotQA graphs and ideal trajectories against R4C's gold derivations.

safe-stepwise compare_derivations                     # the real data beside the checkout
"""

from collections.abc import Sequence
from pathlib import Path

from builders.verified.real_data import REAL_DATA
from safe_stepwise.store.tables import table
from scripts.cli import command, run
from studies.derivations import HEADER, table_rows


def main(arguments: Sequence[str]) -> None:
    """Print the table; raises ``UserError`` where the data is not there."""
    parser = command(
        "compare_derivations", "Compare HotpotQA graphs and ideal trajectories with R4C's gold derivations."
    )
    parser.add_argument("--data", type=Path, default=REAL_DATA, help="hotpotqa_*.jsonl and r4c_derivations.jsonl")
    print(table([HEADER, *table_rows(parser.parse_args(arguments).data)]))


if __name__ == "__main__":
    run(main)
