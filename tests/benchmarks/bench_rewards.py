"""The checker as a reward: what ideal and injected trajectories get, and how long that takes.

python -m tests.benchmarks.bench_rewards --verified build/demo/datasets --limit 500

An injected trajectory is the ideal one with one step replaced by an error: one that the checker
confirms, as in the verifier set, or one in held-back words that nothing was left out of. Aims:
ideal 0.95 or more, injected 0.60 or less, 3 ms of processor time a trajectory,
the making of checkers included.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from statistics import fmean

from builders.steps.questions import VerifiedSet, open_verified
from examples.grpo import Trajectories, trajectories
from safe_stepwise.store.tables import text_table
from scripts.cli import run
from tests.benchmarks.command_line import Parser

HEADER = ("benchmark", "questions", "ideal", "injected", "of", "ms each")


def told(verified: VerifiedSet, benchmark: str, limit: int) -> list[Trajectories]:
    """The trajectories of a benchmark's first questions of each split."""
    pairs = (
        pair.sample(0)
        for _, split in verified.splits([benchmark])
        for pair in islice(verified.questions(benchmark, split), limit)
    )
    return [*trajectories(pairs)]


def line(benchmark: str, found: Sequence[Trajectories]) -> tuple[object, ...]:
    """Mean rewards, and processor milliseconds a trajectory."""
    started = time.process_time()
    ideal, injected = ([r for one in found for r in one.rewards(getattr(one, kind))] for kind in ("ideal", "injected"))
    means = [f"{fmean(rewards):.3f}" for rewards in (ideal, injected)]
    seconds = time.process_time() - started
    each = f"{1000 * seconds / (len(ideal) + len(injected)):.2f}"
    return benchmark, len(found), *means, len(injected), each


def main(arguments: Sequence[str]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog="bench_rewards", description=__doc__, formatter_class=form)
    parser.add_argument("--verified", type=Path, required=True, help="folder of build_verified")
    parser.add_argument("--version", default="v0.1.0", help="of that build")
    parser.add_argument("--limit", type=int, default=500, help="questions of each split")
    options = parser.parse_args(arguments)
    verified = open_verified(options.verified, options.version)
    names = dict.fromkeys(build["benchmark"] for build in verified.builds)
    lines = [line(name, told(verified, name, options.limit)) for name in names]
    print(text_table([HEADER, *lines]))


if __name__ == "__main__":
    run(main)
