"""Score noise labels against published ones, or those of another build."""

from dataclasses import dataclass
from pathlib import Path

from builders.verified.lookup import REAL_DATA, drop_repeats, labelled, real_rows
from safe_stepwise.errors import UserError
from safe_stepwise.store import published_labels, tables
from scripts.cli import command, run
from studies.labels import published as comparison


@dataclass(frozen=True, kw_only=True)
class Options:
    data: Path = REAL_DATA
    verified: Path | None = None
    published: Path | None = None
    halves: bool = False
    show: int = 5
    disagreements: Path | None = None

    def __post_init__(self) -> None:
        if (self.verified is None) != (self.published is None):
            raise UserError("--verified and --published go together: give both, or neither")


@command
def main(options: Options) -> None:
    """Print the table and the disagreements; raise ``UserError`` for a mistake of the user."""
    if options.verified and options.published:
        published = _read_reference(options.published)
        rows = {name: [*drop_repeats(labels)] for name, labels in labelled(options.verified)}
    else:
        published, rows = real_rows(options.data)
    if options.halves:
        rows = comparison.halves(rows)
    scores, bins = comparison.build_tables(comparison.measure(rows, published))
    print(tables.text_table(scores))
    print("\nHow sure the labels are, and the share of them that the published ones confirm:\n")
    print(tables.text_table(bins))
    disagreements = comparison.disagreements(rows, published)
    if options.halves:
        disagreements = [row for row in disagreements if not comparison.is_held_out(row[0].id)]
    print(comparison.list_disagreements(disagreements, options.show))
    if options.disagreements:
        comparison.write_disagreements(disagreements, options.disagreements)
        print(f"\n{len(disagreements)} disagreements in {options.disagreements}")


def _read_reference(place: Path) -> dict[str, bool]:
    """Read which rows are unverifiable, by id: from a file, or from the labels that another build judged."""
    if not place.is_dir():
        return published_labels.read_published(place)
    rows = (row for _, group in labelled(place) for row in group)
    return {question.id: label.unverifiable for question, label in rows if label.noise_type != "unparsed"}


if __name__ == "__main__":
    run(main)
