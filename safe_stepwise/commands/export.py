"""Convert rows that `check` reads, or of another format, to a format of other tools."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from safe_stepwise.commands.command import command
from safe_stepwise.commands.reading import read_chains
from safe_stepwise.commands.values import Name
from safe_stepwise.errors import RowError, UserError, at_place
from safe_stepwise.formats import FORMATS
from safe_stepwise.records import canonical_json
from safe_stepwise.store.files import report_unwritable, write_lines


@dataclass(frozen=True, kw_only=True)
class Options:
    file: Path
    format: Annotated[str, Name(FORMATS)]
    source_format: Annotated[str, Name(FORMATS)] = "steps"
    output: Path


@command
def main(options: Options) -> str:
    """Write the rows of each chain and return a summary; raises ``UserError`` for a chain that does not fit."""
    rows, total, left_out = list[Any](), 0, 0
    for place, chain in read_chains(options.file, options.source_format):
        with at_place(place, RowError):
            chain_rows = [*FORMATS[options.format].write(chain)]
        rows += chain_rows
        total += 1
        left_out += not chain_rows
    if not rows:
        raise UserError(f"{options.file}: no chain has the labels that {options.format} needs")
    with report_unwritable(options.output):
        write_lines(options.output, map(canonical_json, rows))
    left_out_note = (
        f"; {left_out:,} have not the labels that {options.format} needs, and were left out" if left_out else ""
    )
    return f"{options.output}: {len(rows):,} rows of {total:,} chains{left_out_note}"
