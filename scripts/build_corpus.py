"""Write the passages of a benchmark's rows as a corpus to search, and measure the search.

    safe-stepwise build_corpus --benchmark 2wikimultihopqa --input train.json --split train \\
        --output build/2wiki-corpus.jsonl.gz
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from builders.benchmarks import BENCHMARKS
from builders.benchmarks.sources import canonical_split
from builders.corpus.passages import RECALL_OF, CorpusBuild, build, summary
from builders.verified.collect import Build
from builders.verified.teachers.annotations import AnnotationsTeacher
from safe_stepwise.engines.cache import default_cache
from safe_stepwise.errors import UserError, one_of
from scripts.cli import COUNT, FILE, SEED, command, run, whole


def main(arguments: Sequence[str]) -> None:
    """Build and print a summary; raises ``UserError`` for what the user can mend."""
    options = _parser().parse_args(arguments)
    plan = CorpusBuild(
        sources=_sources(options), output=options.output, recall_of=options.recall_of, seed=options.seed
    )
    cache: Path = options.cache or default_cache()
    print(summary(plan, build(plan, cache.parent / "corpora")))


def _sources(options: argparse.Namespace) -> list[Build]:
    """What to read: benchmark and split are said once for all inputs, or for each."""
    inputs, each = options.input, len(options.input)
    said = {name: getattr(options, name) for name in ("benchmark", "split")}
    for name, values in said.items():
        if len(values) not in (1, each):
            raise UserError(
                f"--{name} is given {len(values)} times, --input {each} times: give it once for all, or once for each"
            )
    every = {name: values * each if len(values) == 1 else values for name, values in said.items()}
    return [
        Build(
            benchmark=one_of(benchmark, BENCHMARKS, "--benchmark"),
            source=source,
            split=canonical_split(split),
            output=options.output.parent,
            teacher=AnnotationsTeacher,
            limit=options.limit,
        )
        for source, benchmark, split in zip(inputs, every["benchmark"], every["split"], strict=True)
    ]


def _parser() -> argparse.ArgumentParser:
    parser = command("build_corpus", (__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    names = ", ".join(BENCHMARKS)
    add("--benchmark", action="append", required=True, metavar="NAME", help=names)
    source = "a file, hub-id@revision; synthetic: rows=N,seed=N; may be repeated"
    add("--input", action="append", required=True, metavar="SOURCE", help=source)
    split = "of the input: train, validation (dev), test"
    add("--split", action="append", required=True, help=split)
    add("--output", **FILE, required=True, help="the corpus: .jsonl, or .jsonl.gz")
    add("--limit", **COUNT, help="read only the first N rows of each input")
    of = f"questions whose removed passage is searched for (default {RECALL_OF}; 0: none)"
    add("--recall-of", type=whole, default=RECALL_OF, metavar="N", help=of)
    add("--seed", **SEED, help="of these questions and passages (default 0)")
    add("--cache", **FILE, help="the search's index lies beside it (as of evaluate_stepwise)")
    return parser


if __name__ == "__main__":
    run(main)
