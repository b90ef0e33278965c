"""Lay evaluations of the same questions side by side: the papers' ablation tables.

safe-stepwise join_results build/full=verified build/noise="with noise" --output build/joined
"""

from collections.abc import Sequence

from evaluators.joining.command import join
from safe_stepwise.checking.faithfulness.judging import judge_chain
from scripts.cli import FOLDER, NAMES, SEED, add_published, command, run, warn


def main(arguments: Sequence[str]) -> None:
    """Join and print a summary; raises ``UserError`` for what the user can mend."""
    parser = command("join_results", (__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("folders", nargs="+", metavar="DIR[=NAME]", help="outputs of evaluate_stepwise")
    add("--output", **FOLDER, required=True, help="the joined evaluation and its report")
    against = "a variant's NAME, or a method, to set all else against; repeatable"
    add("--reference", **NAMES, metavar="NAME", help=against)
    add_published(parser)
    add("--seed", **SEED, help="of the bootstrap and the sign flips (default 0)")
    given = parser.parse_args(arguments)
    named = given.reference, given.published, given.seed
    print(join(given.folders, given.output, warn, *named, judge_chain=judge_chain))


if __name__ == "__main__":
    run(main)
