"""Score noise labels against published ones, or the labels of one build against another's.

safe-stepwise compare_labels                          # the real data beside the checkout
safe-stepwise compare_labels --verified build/musique --published labels.jsonl
safe-stepwise compare_labels build/by-model build/published --output compared.json
"""

import argparse
from collections.abc import Sequence

from builders.verified.lookup import labelled, once, sure
from builders.verified.real_data import REAL_DATA, real_rows
from safe_stepwise.errors import UserError
from safe_stepwise.store.agreement import read_published
from safe_stepwise.store.tables import table
from scripts.cli import FILE, FOLDER, Parser, command, run, share, warn
from studies.labels import builds
from studies.labels.published import (
    CALIBRATION,
    HEADER,
    calibration,
    comparison,
    disagreements,
    halves,
    kept_back,
    listed,
    write_disagreements,
)

ALONE = ("verified", "published", "min_confidence", "halves", "disagreements")
"""Options that two builds have no use for."""


def main(arguments: Sequence[str]) -> None:
    """Print the table and the disagreements; raises ``UserError`` for what the user can mend."""
    options = _parser().parse_args(arguments)
    if options.builds:
        print(_two_builds(options))
        return
    if options.output:
        raise UserError("--output is of two builds; write --disagreements of published labels")
    if (options.verified is None) != (options.published is None):
        raise UserError("--verified and --published go together: give both, or neither")
    if options.verified:
        published = read_published(options.published)
        rows = {name: once(found) for name, found in labelled(options.verified)}
    else:
        published, rows = real_rows(options.data)
    rows = sure(rows, options.min_confidence, warn)
    if options.halves:
        rows = halves(rows)
    print(table([HEADER, *comparison(rows, published)]))
    print("\nHow sure the labels are, and the share of them that the published ones confirm:\n")
    print(table([CALIBRATION, *calibration(rows, published)]))
    differ = disagreements(rows, published)
    if options.halves:
        differ = [row for row in differ if not kept_back(row[0].id)]
    print(listed(differ, options.show))
    if options.disagreements:
        write_disagreements(differ, options.disagreements)
        print(f"\n{len(differ)} disagreements in {options.disagreements}")


def _two_builds(options: argparse.Namespace) -> str:
    named = [f"--{name.replace('_', '-')}" for name in ALONE if getattr(options, name)]
    if named:
        raise UserError(f"{', '.join(named)}: of no use to two builds; leave out one or the other")
    if len(options.builds) != 2:
        raise UserError(f"{options.builds[0]}: name two builds to compare, and no more")
    one, other = map(builds.read_labels, options.builds)
    parts = builds.compared(one, other)
    if options.output:
        builds.write(one, other, parts, options.output)
    return builds.told(one, other, parts)


def _parser() -> Parser:
    parser = command("compare_labels", "Score noise labels against published ones, or two builds' labels.")
    add = parser.add_argument
    two = "two outputs of build_verified or regenerate: the first is scored against the second"
    add("builds", nargs="*", **FOLDER, help=two)
    add("--output", **FILE, help="write the comparison of two builds here (JSON), too")
    add("--data", **FOLDER, default=REAL_DATA, help="real rows and their labels")
    add("--verified", **FOLDER, help="an output of build_verified, to score")
    add("--published", **FILE, help="JSONL labels to score it against")
    sure = "count no noise of which a label is less sure than X, 0 to 1 (0: count all)"
    add("--min-confidence", type=share, default=0.0, metavar="X", help=sure)
    add(
        "--halves",
        action="store_true",
        help="score two halves apart and list the disagreements of one only, the other being kept"
        " back from whoever mends the checks",
    )
    add("--show", type=int, default=5, metavar="N", help="disagreements to print a side (5)")
    add("--disagreements", **FILE, help="write all of them here, as JSONL")
    return parser


if __name__ == "__main__":
    run(main)
