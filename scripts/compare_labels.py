"""Score noise labels against published ones, or two builds' labels."""

from dataclasses import dataclass
from pathlib import Path

from builders.verified.lookup import REAL_DATA, apply_confidence, drop_repeats, labelled, real_rows
from safe_stepwise.commands.values import Share
from safe_stepwise.errors import UserError
from safe_stepwise.store.agreement import read_published
from safe_stepwise.store.tables import text_table
from scripts.cli import command, run, warn
from studies.labels import builds
from studies.labels import published as against

ALONE = ("verified", "published", "min_confidence", "halves", "disagreements")
"""Options that two builds have no use for."""


@dataclass(frozen=True, kw_only=True)
class Options:
    builds: tuple[Path, ...] = ()
    output: Path | None = None
    data: Path = REAL_DATA
    verified: Path | None = None
    published: Path | None = None
    min_confidence: Share = 0.0
    halves: bool = False
    show: int = 5
    disagreements: Path | None = None

    def __post_init__(self) -> None:
        if not self.builds and (self.verified is None) != (self.published is None):
            raise UserError("--verified and --published go together: give both, or neither")


@command
def main(options: Options) -> None:
    """Print the table and the disagreements; raises ``UserError`` for what the user can mend."""
    if options.builds:
        print(_two_builds(options))
        return
    if options.output:
        raise UserError("--output is of two builds; write --disagreements of published labels")
    if options.verified and options.published:
        published = read_published(options.published)
        rows = {name: drop_repeats(labels) for name, labels in labelled(options.verified)}
    else:
        published, rows = real_rows(options.data)
    rows = apply_confidence(rows, options.min_confidence, warn)
    if options.halves:
        rows = against.halves(rows)
    print(text_table([against.HEADER, *against.comparison(rows, published)]))
    print("\nHow sure the labels are, and the share of them that the published ones confirm:\n")
    print(text_table([against.CALIBRATION, *against.calibration(rows, published)]))
    differ = against.disagreements(rows, published)
    if options.halves:
        differ = [row for row in differ if not against.is_held_out(row[0].id)]
    print(against.list_disagreements(differ, options.show))
    if options.disagreements:
        against.write_disagreements(differ, options.disagreements)
        print(f"\n{len(differ)} disagreements in {options.disagreements}")


def _two_builds(options: Options) -> str:
    unused = [f"--{name.replace('_', '-')}" for name in ALONE if getattr(options, name)]
    if unused:
        raise UserError(f"{', '.join(unused)}: of no use to two builds; leave out one or the other")
    if len(options.builds) != 2:
        raise UserError(f"{options.builds[0]}: name two builds to compare, and no more")
    build, reference = map(builds.read_labels, options.builds)
    comparisons = builds.compare(build, reference)
    if options.output:
        builds.write(build, reference, comparisons, options.output)
    return builds.render(build, reference, comparisons)


if __name__ == "__main__":
    run(main)
