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
from dataclasses import dataclass
from pathlib import Path

import psutil

from scripts.cli import table

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


def _resident(root: psutil.Process) -> int:
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


def main() -> None:
    """Print rows/s, peak memory, and both relative to the smallest size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--split", choices=["train", "validation"], default="train")
    options = parser.parse_args()
    lines: list[tuple[object, ...]] = [
        ("rows", "seconds", "rows/s", "peak MB", "rows x", "time x", "memory x")
    ]
    first = None
    for rows in options.sizes:
        run = measure(rows, options.workers, options.split)
        first = first or run
        lines.append(
            (
                run.rows,
                round(run.seconds, 1),
                round(run.rows / run.seconds),
                round(run.peak_bytes / 1e6),
                round(run.rows / first.rows, 2),
                round(run.seconds / first.seconds, 2),
                round(run.peak_bytes / first.peak_bytes, 2),
            )
        )
        print(table(lines), flush=True)


if __name__ == "__main__":
    main()
