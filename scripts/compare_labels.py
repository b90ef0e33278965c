"""Score noise labels against published ones, or two builds' labels."""

from dataclasses import dataclass
from pathlib import Path

from builders.verified.lookup import REAL_DATA, apply_confidence, drop_repeats, labelled, real_rows
from safe_stepwise.commands.values import Share
from safe_stepwise.errors import UserError
from safe_stepwise.store import agreement, tables
from scripts.cli import command, note, run
from studies.labels import builds
from studies.labels import published as comparison

OF_PUBLISHED = ("verified", "published", "min_confidence", "halves", "disagreements")
"""The options that go with published labels alone, not with two builds."""


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
    """Print the table and the disagreements; raise ``UserError`` for a mistake of the user."""
    if options.builds:
        print(_compare_builds(options))
        return
    if options.output:
        raise UserError("--output is of two builds; write --disagreements of published labels")
    if options.verified and options.published:
        published = agreement.read_published(options.published)
        rows = {name: drop_repeats(labels) for name, labels in labelled(options.verified)}
    else:
        published, rows = real_rows(options.data)
    rows = apply_confidence(rows, options.min_confidence, note)
    if options.halves:
        rows = comparison.halves(rows)
    print(tables.text_table([comparison.HEADER, *comparison.comparison(rows, published)]))
    print("\nHow sure the labels are, and the share of them that the published ones confirm:\n")
    print(tables.text_table([comparison.CALIBRATION, *comparison.calibration(rows, published)]))
    disagreements = comparison.disagreements(rows, published)
    if options.halves:
        disagreements = [row for row in disagreements if not comparison.is_held_out(row[0].id)]
    print(comparison.list_disagreements(disagreements, options.show))
    if options.disagreements:
        comparison.write_disagreements(disagreements, options.disagreements)
        print(f"\n{len(disagreements)} disagreements in {options.disagreements}")


def _compare_builds(options: Options) -> str:
    if unused := [f"--{name.replace('_', '-')}" for name in OF_PUBLISHED if getattr(options, name)]:
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
