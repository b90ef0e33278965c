"""Compare HotpotQA graphs and ideal trajectories with R4C's gold derivations."""

from dataclasses import dataclass
from pathlib import Path

from builders.verified.lookup import REAL_DATA
from safe_stepwise.store.tables import text_table
from scripts.cli import command, run
from studies.derivations import HEADER, build_coverage_rows


@dataclass(frozen=True, kw_only=True)
class Options:
    data: Path = REAL_DATA


@command
def main(options: Options) -> str:
    """Render the table; raise ``UserError`` if the data is missing."""
    return text_table([HEADER, *build_coverage_rows(options.data)])


if __name__ == "__main__":
    run(main)
