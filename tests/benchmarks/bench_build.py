"""Time and memory of the whole synthetic build, and how both grow.

python -m tests.benchmarks.bench_build                 # 10,000, 40,000 and 167,454 rows
python -m tests.benchmarks.bench_build 10000 20000 --workers 2
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from safe_stepwise.errors import UserError
from safe_stepwise.store.tables import table
from scripts.cli import Parser, positive, run

ROOT = Path(__file__).parents[2]
SIZES = (10_000, 40_000, 167_454)
"""The last is the size of 2WikiMultihopQA's training set."""


@dataclass(frozen=True)
class Run:
    """One build: rows, seconds, and the highest sum of resident memory over its processes."""

    rows: int
    seconds: float
    peak_bytes: int


def measure(rows: int, workers: int, split: str) -> Run:
    """Build ``rows`` synthetic rows in a subprocess, sampling the memory of its process tree."""
    import psutil

    with tempfile.TemporaryDirectory(prefix="bench-build-") as output:
        command = [sys.executable, "-m", "scripts.build_verified", "--benchmark", "synthetic"]
        command += ["--input", f"rows={rows},seed=7,noise=0.12", "--split", split]
        command += ["--teacher", "annotations", "--workers", str(workers), "--output", output]
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        peak = 0
        while process.poll() is None:
            peak = max(peak, _resident(psutil.Process(process.pid)))
            time.sleep(0.1)
        if process.returncode:
            raise SystemExit(f"build of {rows} rows failed with status {process.returncode}")
        return Run(rows, time.perf_counter() - started, peak)


def _resident(root: Any) -> int:
    import psutil

    total = 0
    try:
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    for process in family:
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total


def main(arguments: Sequence[str]) -> None:
    """Print rows/s, peak memory, and both relative to the smallest size."""
    usage = "examples:\n" + "\n".join(f"  {line}" for line in __doc__.strip().splitlines()[2:])
    parser = Parser(
        prog="python -m tests.benchmarks.bench_build",
        description=__doc__.splitlines()[0],
        epilog=usage,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sizes", nargs="*", type=positive, default=list(SIZES), help="rows")
    parser.add_argument("--workers", type=positive, default=2, metavar="N")
    parser.add_argument("--split", choices=["train", "validation"], default="train")
    options = parser.parse_args(arguments)
    if find_spec("psutil") is None:
        raise UserError("psutil, which measures the memory, is missing: pip install -e '.[dev]'")
    lines: list[tuple[object, ...]] = [
        ("rows", "seconds", "rows/s", "peak MB", "rows x", "time x", "memory x")
    ]
    first = None
    for rows in options.sizes:
        made = measure(rows, options.workers, options.split)
        first = first or made
        lines.append(
            (
                made.rows,
                round(made.seconds, 1),
                round(made.rows / made.seconds),
                round(made.peak_bytes / 1e6),
                round(made.rows / first.rows, 2),
                round(made.seconds / first.seconds, 2),
                round(made.peak_bytes / first.peak_bytes, 2),
            )
        )
        print(table(lines), flush=True)


if __name__ == "__main__":
    run(main)
