"""Write the labels of verified benchmarks as one self-contained HTML page."""

from dataclasses import dataclass
from pathlib import Path

from cards.pages import WORDS
from evaluators.audit.labels import ROWS, write_labels
from safe_stepwise.commands.values import Count
from safe_stepwise.store.names import LABELS_PAGE
from scripts.cli import command, run


@dataclass(frozen=True, kw_only=True)
class Options:
    folder: Path
    output: Path | None = None
    rows: Count = ROWS


def view_labels(options: Options) -> str:
    """Write the page; return its number of rows, size and place."""
    output = options.output or options.folder / LABELS_PAGE
    page = write_labels(options.folder, output, WORDS["noise_types"], options.rows)
    total = sum(page.totals.values())
    size = output.stat().st_size / 1e6
    return f"labels of {len(page.rows):,} of {total:,} rows, {size:.1f} MB; open the page in a browser:\n{output}"


main = command(view_labels)

if __name__ == "__main__":
    run(main)
