"""Convert the trajectories or step labels of FILE to rows that `check` reads."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from safe_stepwise.commands.command import command
from safe_stepwise.commands.reading import read_chains
from safe_stepwise.commands.values import Name
from safe_stepwise.formats import FORMATS, steps
from safe_stepwise.records import canonical_json
from safe_stepwise.store.files import report_unwritable, write_lines


@dataclass(frozen=True, kw_only=True)
class Options:
    file: Path
    format: Annotated[str, Name(FORMATS)]
    output: Path


@command
def main(options: Options) -> str:
    """Write a chain a line and return a summary; raises ``UserError`` for a row of another form."""
    chains = [chain for _, chain in read_chains(options.file, options.format)]
    with report_unwritable(options.output):
        write_lines(options.output, (canonical_json(row) for chain in chains for row in steps.write(chain)))
    labels = Counter(step.label for chain in chains for step in chain.steps)
    searches = sum(step.is_search for chain in chains for step in chain.steps)
    return (
        f"{options.output}: {len(chains):,} chains of {labels.total():,} steps, {searches:,} of them bare searches; "
        f"labels: right {labels[1]:,}, neutral {labels[0]:,}, wrong {labels[-1]:,}, none {labels[None]:,}"
    )
