"""Find the relation paths of questions over a knowledge graph, as rows to train a proposer on.

    safe-stepwise build_paths --benchmark metaqa --kb kb.txt --input qa_train.txt \\
        --split train --output build/paths
"""

import argparse
from collections.abc import Sequence

from builders.benchmarks.sources import canonical_split
from builders.paths.kg_build import build
from builders.paths.kg_collect import TEST_SHARE, PathsBuild
from builders.paths.negatives import MOST
from builders.paths.relation_readers import READERS
from builders.paths.relation_statistics import summary
from builders.work.executors import Submitted
from cards.datasets import paths as card
from safe_stepwise.errors import one_of
from safe_stepwise.graphs.relation_paths import HOPS
from safe_stepwise.store.names import REJECTS, known_version
from scripts.cli import COUNT, FILE, FOLDER, SEED, command, run, share
from scripts.engine_options import add_engine_options, engine_of


def main(arguments: Sequence[str]) -> None:
    """Build and print a summary; raises ``UserError`` for what the user can mend."""
    options = _parser().parse_args(arguments)
    plan = PathsBuild(
        benchmark=one_of(options.benchmark, READERS, "--benchmark"),
        sources=tuple(options.input),
        split=canonical_split(options.split),
        output=options.output,
        kb=options.kb,
        version=known_version(options.version),
        seed=options.seed,
        limit=options.limit,
        keep_rejects=options.on_error == "keep",
        test_share=options.test_share,
        max_hops=options.max_hops,
        negatives=options.negatives,
        **engine_of(options),
    )
    try:
        print(summary(plan, build(plan, card)))
    except Submitted as message:
        print(message)


def _parser() -> argparse.ArgumentParser:
    parser = command("build_paths", (__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--benchmark", required=True, metavar="NAME", help=", ".join(READERS))
    graph = "the graph: head|relation|tail a line (.gz too); not for rows that bring their own"
    add("--kb", **FILE, help=graph)
    source = "questions: a file or hub-id@revision; may be repeated (MetaQA has a file a hop)"
    add("--input", action="append", required=True, metavar="SOURCE", help=source)
    add("--split", required=True, help="of the input: train, validation (dev), test")
    add("--output", **FOLDER, required=True, help="the set is DIR/dp-BENCHMARK-paths")
    add("--limit", **COUNT, help="read only the first N rows of each input")
    add_engine_options(parser)
    bad = f"a row that cannot be read stops the run, or is kept apart in DIR/{REJECTS}"
    add("--on-error", choices=["stop", "keep"], default="stop", help=bad)
    far = f"relations of a path, at most (default {HOPS}; a question's own hops, if more)"
    add("--max-hops", **COUNT, default=HOPS, help=far)
    hard = f"wrong paths of each hard kind that a topic entity gets, at most (default {MOST})"
    add("--negatives", **COUNT, default=MOST, help=hard)
    held = f"questions, and templates, that are held out (default {TEST_SHARE})"
    add("--test-share", type=share, default=TEST_SHARE, metavar="X", help=held)
    add("--seed", **SEED, help="of splits, draws and orders (default 0)")
    add("--version", default="v0.1.0", help="of the release (default v0.1.0)")
    return parser


if __name__ == "__main__":
    run(main)
