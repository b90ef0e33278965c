"""Make the path probe of verified questions: valid relation paths, and corrupted ones.

safe-stepwise build_path_probe --verified build/verified --output build/paths
"""

import argparse
from collections.abc import Sequence

from builders.paths.build import build, summary
from builders.paths.sources import ProbeBuild
from cards.datasets import path_probe as card
from evaluators.derivations import read_derivations
from safe_stepwise.store.names import PATH_PROBE, known_version
from scripts.cli import COUNT, FILE, FOLDER, NAMES, SEED, command, run


def main(arguments: Sequence[str]) -> None:
    """Build and print a summary; raises ``UserError`` for what the user can mend."""
    options = _parser().parse_args(arguments)
    plan = ProbeBuild(
        verified=options.verified,
        output=options.output,
        films=options.kb,
        questions=options.questions,
        derivations=options.derivations,
        benchmarks=tuple(options.benchmark),
        limit=options.limit,
        version=known_version(options.version),
        seed=options.seed,
    )
    known = read_derivations(plan.derivations) if plan.derivations is not None else {}
    print(summary(plan.output, build(plan, card, known)))


def _parser() -> argparse.ArgumentParser:
    parser = command("build_path_probe", "Make relation paths, valid and corrupted, of questions.")
    add = parser.add_argument
    add("--verified", **FOLDER, required=True, help="what build_verified wrote")
    add("--output", **FOLDER, required=True, help=f"{PATH_PROBE} goes there")
    add("--kb", **FILE, help="MetaQA's knowledge base, kb.txt (or .gz), for --questions")
    add("--questions", **FILE, help="MetaQA's questions as JSON lines: id, hop, question, answers")
    add("--derivations", **FILE, help="R4C's derivations as JSON lines, for hotpotqa")
    add("--benchmark", **NAMES, metavar="B", help="of --verified; repeatable (default: all)")
    add("--limit", **COUNT, help="questions of a benchmark, drawn (default: all)")
    add("--version", default="v0.1.0", help="of the release, as of --verified (default v0.1.0)")
    add("--seed", **SEED, help="of all draws (default 0)")
    return parser


if __name__ == "__main__":
    run(main)
