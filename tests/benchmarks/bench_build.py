"""Time and memory of the whole synthetic build, and how both grow.

python -m tests.benchmarks.bench_build                 # 10,000, 40,000 and 167,454 rows
python -m tests.benchmarks.bench_build 10000 20000 --workers 2
python -m tests.benchmarks.bench_build 20000 20000 --against ../other   # another checkout, in turn
"""

from __future__ import annotations

import argparse
import resource
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
from safe_stepwise.store.tables import text_table
from scripts.cli import run
from tests.benchmarks.command_line import Parser, positive

ROOT = Path(__file__).parents[2]
SIZES = (10_000, 40_000, 167_454)
"""The last is the size of 2WikiMultihopQA's training set."""
_HEADER = ("code", "rows", "seconds", "CPU s", "rows/s", "peak MB", "rows x", "time x", "CPU x",
           "memory x")  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One build: rows, seconds, seconds of processor time, all its processes together, and the
    highest sum of their resident memory."""

    rows: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int


def measure(rows: int, workers: int, split: str, checkout: Path = ROOT) -> Run:
    """Build ``rows`` synthetic rows with a checkout's code, sampling the memory of its processes.

    Raises ``SystemExit`` for a build that fails.
    """
    import psutil

    with tempfile.TemporaryDirectory(prefix="bench-build-") as output:
        command = [sys.executable, "-m", "scripts.build_verified", "--benchmark", "synthetic"]
        command += ["--input", f"rows={rows},seed=7,noise=0.12", "--split", split]
        command += ["--teacher", "annotations", "--workers", str(workers), "--output", output]
        started, before = time.perf_counter(), _cpu_seconds()
        process = subprocess.Popen(command, cwd=checkout, stdout=subprocess.DEVNULL)
        peak = 0
        while process.poll() is None:
            peak = max(peak, _resident(psutil.Process(process.pid)))
            time.sleep(0.1)
        if process.returncode:
            raise SystemExit(f"build of {rows} rows failed with status {process.returncode}")
        return Run(rows, time.perf_counter() - started, _cpu_seconds() - before, peak)


def _cpu_seconds() -> float:
    """Of all ended descendants, by the system's own account."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
    """Print rows/s and peak memory: a line here relative to the first, one there to that here."""
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
    other = "another checkout, of base code say, whose builds are made in turn with ours"
    parser.add_argument("--against", type=Path, metavar="FOLDER", help=other)
    options = parser.parse_args(arguments)
    if find_spec("psutil") is None:
        raise UserError("psutil, which measures the memory, is missing: pip install -e '.[dev]'")
    if options.against and not (options.against / "scripts" / "build_verified.py").is_file():
        raise UserError(f"--against {options.against}: is no checkout (no scripts/build_verified)")
    made: list[Run] = []
    lines: list[tuple[object, ...]] = [_HEADER]
    for rows in options.sizes:
        ours = measure(rows, options.workers, options.split)
        made.append(ours)
        lines.append(_line("here", ours, made[0]))
        if options.against:
            theirs = measure(rows, options.workers, options.split, options.against)
            lines.append(_line("there", theirs, ours))
        print(text_table(lines), flush=True)


def _line(code: str, run: Run, first: Run) -> tuple[object, ...]:
    """A build's figures, and how many times those of ``first`` they are."""
    return (
        code,
        run.rows,
        round(run.seconds, 1),
        round(run.cpu_seconds, 1),
        round(run.rows / run.seconds),
        round(run.peak_bytes / 1e6),
        round(run.rows / first.rows, 2),
        round(run.seconds / first.seconds, 2),
        round(run.cpu_seconds / first.cpu_seconds, 2),
        round(run.peak_bytes / first.peak_bytes, 2),
    )


if __name__ == "__main__":
    run(main)
