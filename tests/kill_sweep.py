"""Kill a command before each change that it makes to files, run it again, compare every file.

    python -m tests.kill_sweep                     # every kill of every command: hours
    python -m tests.kill_sweep --sample 20 regenerate

What is killed is a fork of this process, which has imported everything, so a kill costs what the
command itself does. Python announces each change of a file beforehand (`sys.addaudithook`); what
Arrow writes goes unannounced, between two that are. Replies that are kept in a cache and
trajectories that are kept in a journal are announced here. After a kill and a second run the folder
must hold the same files with the same bytes as one that nothing disturbed, hidden ones too, and no
reply that was kept may have been asked for again.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluators.run.runner import Journal
from safe_stepwise.engines.base import Completion
from safe_stepwise.engines.client import ResponseCache
from safe_stepwise.language.syntax import parse
from safe_stepwise.records import Trajectory
from safe_stepwise.store.code import code_digest
from scripts import (
    build_paths,
    build_verified,
    build_verifier_steps,
    cli,
    evaluate_deliberation,
    evaluate_stepwise,
    measure_faithfulness,
    regenerate,
)
from tests import sketches
from tests.makers import films

ROOT = Path(__file__).parents[1]
REPLY, TRAJECTORY = "reply", "trajectory"
"""What is kept, though no file is opened for it."""
CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate",
           REPLY, TRAJECTORY}  # fmt: skip
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
MANIFEST = """
version: v0.1.0
seed: 5
evaluation_size: 20
builds:
  - {benchmark: synthetic, input: "rows=40,seed=11", split: train, teacher: annotations}
  - {benchmark: synthetic, input: "rows=40,seed=12", split: validation, teacher: annotations}
verifier_steps: {rows: 30, ideal: 0.34, test_share: 0.3}
evaluation:
  generator: symbolic:error_rate=0.3,seed=1
  verifier: symbolic
  judge: symbolic
  limit: 3
"""
PATHS = """
version: v0.1.0
seed: 5
paths: {benchmark: metaqa, kb: {input: kb.txt}, questions: [{input: questions.jsonl}]}
deliberation: {paths: [oracle, majority], held_out: false, ways: [constrained, free], per_hop: 2}
"""
Main = Callable[[Sequence[str]], None]


def verified(folder: Path, rows: int, split: str) -> list[str]:
    return [
        *("--benchmark", "synthetic", "--input", f"rows={rows},seed=3", "--split", split),
        *("--teacher", "annotations", "--workers", "1", "--output", str(folder / "out")),
    ]


def steps(folder: Path, rows: int) -> list[str]:
    return [
        *("--verified", str(folder / "out"), "--teacher", "annotations", "--rows", str(rows)),
        *("--test-share", "0.3", "--workers", "1", "--output", str(folder / "steps")),
    ]


def evaluation(folder: Path, limit: int) -> list[str]:
    return [
        *("--questions", str(folder / "out"), "--method", "no_verification", "--method", "safe"),
        *("--method", "sg_fsm2", "--method", "sg_fsm_safe"),
        *("--generator", "symbolic:error_rate=0.3,seed=1", "--verifier", "symbolic"),
        *("--judge", "symbolic", "--limit", str(limit), "--output", str(folder / "results")),
        *("--cache", str(folder / "cache" / "replies.sqlite")),
    ]


def measurement(folder: Path) -> list[str]:
    return [str(folder / "results"), "--rule", "paper", "--sigma", "0.9", "--workers", "1"]


def release(folder: Path) -> list[str]:
    (folder / "manifest.yaml").write_text(MANIFEST)
    cache = folder / "cache" / "replies.sqlite"
    return [
        *(str(folder / "manifest.yaml"), "--output", str(folder / "release")),
        *("--cache", str(cache), "--workers", "1"),
    ]


def release_of_paths(folder: Path) -> list[str]:
    films.written(folder, 12)
    (folder / "manifest.yaml").write_text(PATHS)
    cache = folder / "cache" / "replies.sqlite"
    return [
        *(str(folder / "manifest.yaml"), "--output", str(folder / "release")),
        *("--cache", str(cache), "--workers", "1"),
    ]


def paths(folder: Path, rows: int) -> list[str]:
    kb, asked = films.written(folder / "films", 12)
    return [
        *("--benchmark", "metaqa", "--kb", str(kb), "--input", str(asked), "--split", "train"),
        *("--limit", str(rows), "--workers", "1", "--output", str(folder / "paths")),
    ]


def deliberation(folder: Path, limit: int) -> list[str]:
    kb, asked = films.written(folder / "films", 12)
    return [
        *("--questions", str(asked), "--kb", str(kb), "--limit", str(limit)),
        *("--paths", "nearest", "--paths", "oracle", "--candidates", "4"),
        *("--generator", "symbolic:error_rate=0.3,seed=1", "--output", str(folder / "answers")),
        *("--cache", str(folder / "cache" / "replies.sqlite")),
    ]


Runs = list[tuple[Main, list[str]]]


def case(name: str, folder: Path) -> Runs:
    """What is run in ``folder``: the last is the command to kill, the others make its ground.

    Each but a release finds an earlier result in its place.
    """
    ground: Runs = [
        (build_verified.main, verified(folder, 40, "train")),
        (build_verified.main, verified(folder, 24, "validation")),
    ]
    return {
        "build_verified": [*ground, (build_verified.main, verified(folder, 40, "validation"))],
        "build_verifier_steps": [
            *ground,
            (build_verifier_steps.main, steps(folder, 20)),
            (build_verifier_steps.main, steps(folder, 30)),
        ],
        "evaluate_stepwise": [
            *ground,
            (evaluate_stepwise.main, evaluation(folder, 2)),
            (evaluate_stepwise.main, evaluation(folder, 3)),
        ],
        "measure_faithfulness": [
            *ground,
            (evaluate_stepwise.main, evaluation(folder, 3)),
            (measure_faithfulness.main, measurement(folder)),
        ],
        "build_paths": [(build_paths.main, paths(folder, 8)), (build_paths.main, paths(folder, 12))],
        "evaluate_deliberation": [
            (evaluate_deliberation.main, deliberation(folder, 3)),
            (evaluate_deliberation.main, deliberation(folder, 5)),
        ],
        "regenerate": [(regenerate.main, release(folder))],
        "regenerate_paths": [(regenerate.main, release_of_paths(folder))],
    }[name]


LOG = Path(os.devnull)
"""Where commands print to."""
COMMANDS = (
    "build_verified",
    "build_verifier_steps",
    "build_paths",
    "evaluate_stepwise",
    "measure_faithfulness",
    "evaluate_deliberation",
    "regenerate",
    "regenerate_paths",
)


def forked(main: Main, arguments: Sequence[str], watch: Callable[[], None]) -> int:
    """Run a command in a fork; its exit status, or less than 0 for the signal that killed it."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        os.setsid()
        log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.argv = ["command", *arguments]
        announce()
        watch()
        cli.run(main)
    except SystemExit as end:
        os._exit(int(end.code or 0))
    except BaseException:
        traceback.print_exc()
        os._exit(70)


def announce() -> None:
    """Say beforehand what is kept; `AssertionError` for a reply that was kept before."""
    put, add = ResponseCache.store, Journal.add

    def puts(cache: ResponseCache, found: Sequence[tuple[str, Completion]]) -> None:
        known = [cache.get(key) for key, _ in found]
        assert not [said for said in known if said and said.ending == "whole"], "asked for again"
        sys.audit(REPLY, os.fspath(cache.path))
        put(cache, found)

    def adds(journal: Journal, key: str, trajectory: Trajectory) -> None:
        assert journal.get(key) is None, "answered again"
        sys.audit(TRAJECTORY, os.fspath(journal._path))
        add(journal, key, trajectory)

    ResponseCache.store, Journal.add = puts, adds  # type: ignore[method-assign]


def killing(folder: Path, at: int, told: Path = Path(os.devnull)) -> Callable[[], None]:
    """Has a process killed before its ``at``-th change below ``folder``; each is ``told``."""

    def watch() -> None:
        lines, seen = told.open("w"), 0

        def hook(event: str, given: tuple[Any, ...]) -> None:
            nonlocal seen
            writes = event == "open" and isinstance(given[2], int) and given[2] & WRITES
            if not (writes or event in CHANGES) or not where(given).startswith(f"{folder}/"):
                return
            seen += 1
            if seen == at:
                os.killpg(0, signal.SIGKILL)
            lines.write(f"{event} {where(given)}\n")
            lines.flush()

        sys.addaudithook(hook)

    return watch


def where(given: tuple[Any, ...]) -> str:
    """The path that a change concerns; `shutil.rmtree` names files by their folder's handle."""
    if isinstance(given[0], int):
        return ""
    path, handle = os.fsdecode(given[0]), given[-1]
    is_beside = not path.startswith("/") and isinstance(handle, int) and handle > 2
    return os.path.join(os.readlink(f"/proc/self/fd/{handle}") if is_beside else "", path)


def said() -> str:
    """The last that a command printed."""
    return LOG.read_text().strip()[-1000:]


def listing(folder: Path) -> dict[str, str]:
    """Every file and folder, hidden ones too, with the digest of what it holds."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        found[name] = "folder" if path.is_dir() else hashlib.sha256(content(path)).hexdigest()
    return found


def content(path: Path) -> bytes:
    """Of a file; of a cache, the replies in one order."""
    if path.suffix == ".sqlite":
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            return repr(db.execute("select * from completions order by key").fetchall()).encode()
    return path.read_bytes()


def differences(expected: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    return [
        f"{name}: {expected.get(name, 'not there')[:8]} became {found.get(name, 'not there')[:8]}"
        for name in sorted({*expected, *found})
        if expected.get(name) != found.get(name)
    ]


def sweep(name: str, home: Path, sample: int | None, seed: int) -> list[str]:
    """Kill a command at every change (or a sample of them); what came out otherwise."""
    at, ground = home / "run", home / "ground"
    at.mkdir()
    *before, (main, arguments) = case(name, at)
    for earlier, given in before:
        if forked(earlier, given, lambda: None):
            raise SystemExit(f"{name}: its ground could not be made: {said()}")
    shutil.copytree(at, ground)
    tally = home / "changes"
    if forked(main, arguments, killing(at, 0, tally)):
        raise SystemExit(f"{name}: ended in an error: {said()}")
    expected, changes = listing(at), tally.read_text().splitlines()
    numbers = range(1, len(changes) + 1)
    if sample is not None and sample < len(numbers):
        numbers = sorted(random.Random(seed).sample(numbers, sample))
    wrong = []
    for number in numbers:
        shutil.rmtree(at)
        shutil.copytree(ground, at)
        killed = forked(main, arguments, killing(at, number))
        ended = forked(main, arguments, lambda: None)
        left = differences(expected, listing(at))
        if ended:
            left = [f"the second run ended with status {ended}: {said()}", *left]
        if killed != -signal.SIGKILL:
            left = [f"it was not killed, but ended with status {killed}", *left]
        if left:
            told = f"{name}, killed before change {number}, {changes[number - 1]}"
            wrong.append("\n    ".join([told, *left[:8]]))
            print(wrong[-1], flush=True)
    print(f"{name}: {len(changes)} changes, killed before {len(numbers)}", flush=True)
    return wrong


def preload() -> None:
    """What commands import late, what they read of their own code, and the parser, which takes seconds to load."""
    code_digest("scripts.regenerate", excluded=())
    for module in ("datasets", "matplotlib.figure", "matplotlib.backends.backend_agg", "jinja2"):
        importlib.import_module(module)
    parse("Oru is old.")


def main() -> None:
    preload()
    sketches.use_sketches()
    parser = argparse.ArgumentParser()
    parser.add_argument("commands", nargs="*", default=COMMANDS)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    global LOG
    wrong = []
    for name in options.commands:
        with tempfile.TemporaryDirectory(prefix="kills-") as home:
            LOG = Path(home) / "log"
            wrong += sweep(name, Path(home).resolve(), options.sample, options.seed)
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
