"""Ranks that this command waits for: datatrove's on this machine, or Ray's.

Either runs in a process of its own, which leaves nothing running behind: beside ours it may log and
catch signals as it likes, and its many helpers form one group.
"""

import multiprocessing
import os
import signal
import socket
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from builders.work.plans import Plan
from builders.work.ranks import RankError, Survey, Work, first_failure, new_attempt, note, python_path, rank_of
from builders.work.workers import end_with_parent
from safe_stepwise.errors import UserError
from safe_stepwise.store import progress
from safe_stepwise.store.progress import counts

PATIENCE = 30.0
"""Seconds for which a rank's process may be gone without a word: Ray starts some again itself."""

Step = Callable[..., None]


def wait_for(work: Work[Any], plan: Plan, ranks: int, found: Survey) -> None:
    """Have an engine make what is owed; raises what went wrong in a rank, or around them."""
    attempt = new_attempt(work)
    arguments = (_ENGINES[plan.engine], rank_of(work, found, attempt), ranks, plan.workers, attempt)
    launcher = multiprocessing.get_context("spawn").Process(target=_launch, args=arguments)
    launcher.start()
    try:
        _watch(launcher, work, found, attempt)
    finally:
        _end(launcher, attempt)
    if (failure := first_failure(attempt)) is not None:
        raise failure
    if missing := len(found.missing()):
        raise RankError(
            f"{missing} of {len(found.owed)} chunks were not made and no rank said why (exit "
            f"status {launcher.exitcode}); the log is {attempt / 'engine.log'}"
        )


def _watch(launcher: BaseProcess, work: Work[Any], found: Survey, attempt: Path) -> None:
    """Move the bar until the launcher ends; raises ``UserError`` for a rank that was killed."""
    rows = sum(size for _, size in found.owed.values())
    cached = found.rows - rows
    gone: dict[str, float] = {}
    shown: dict[str, Any] = {"unit": work.unit, "desc": work.title, "delay": 1}
    with progress.bar(total=found.rows, initial=cached, **shown) as bar:
        while launcher.is_alive():
            launcher.join(0.5)
            owed = sum(found.missing())
            bar.set_postfix_str(counts(rows - owed, cached, owed), refresh=False)
            bar.update(found.rows - owed - bar.n)
            killed = _killed(attempt)
            gone = {rank: gone.get(rank, time.monotonic()) for rank in killed}
            if any(time.monotonic() - since >= PATIENCE for since in gone.values()):
                raise UserError(
                    f"rank {min(gone)} was killed, most likely for want of memory; run the same "
                    "command again, with fewer --workers: it resumes"
                )


def _killed(attempt: Path) -> set[str]:
    """Ranks of this machine whose process is gone: datatrove's pool would wait for them forever."""
    found = set()
    for file in (attempt / "running").iterdir():
        try:
            host, _, process = file.read_text().partition(" ")
            if process and host == socket.gethostname():
                os.kill(int(process), 0)
        except (FileNotFoundError, PermissionError):
            continue  # ended meanwhile; or its number is another user's process by now
        except ProcessLookupError:
            # It may have ended in good order since its file was listed.
            if file.exists():
                found.add(f"{file.name} (process {process})")
    return found


def _end(launcher: BaseProcess, attempt: Path) -> None:
    """Let the ranks finish their present chunks, unless one is lost; then nothing may be left."""
    try:
        if launcher.is_alive() and not _killed(attempt):
            (attempt / "stop").touch()
            launcher.join()
    finally:
        pid = launcher.pid
        if launcher.exitcode != 0 and pid is not None:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            launcher.kill()
        launcher.join()


def _launch(run: Callable[[Step, int, int, Path], None], step: Step, ranks: int, workers: int, attempt: Path) -> None:
    """The launcher: run an engine with its output in a file."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log = os.open(attempt / "engine.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.dup2(log, 1)
    os.dup2(log, 2)
    end_with_parent(lambda: os.killpg(0, signal.SIGKILL))
    try:
        run(step, ranks, workers, attempt)
    except Exception as error:
        traceback.print_exc()
        note(attempt, "engine", error)  # after any rank's, which begin with a digit
        raise SystemExit(1) from None


def _run_datatrove(step: Step, ranks: int, workers: int, attempt: Path) -> None:
    from datatrove.executor.local import LocalPipelineExecutor

    executor = LocalPipelineExecutor(
        [step], tasks=ranks, workers=min(ranks, workers), logging_dir=str(attempt / "datatrove"), skip_completed=False
    )
    executor.run()


def _run_ray(step: Step, ranks: int, workers: int, attempt: Path) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray
    from datatrove.executor.ray import RayPipelineExecutor

    # The temporary folder, because datatrove's ranks log to one fixed name in it.
    variables = {"PYTHONPATH": python_path(), "TMPDIR": str(attempt / "tmp")}
    (attempt / "tmp").mkdir()
    address = os.environ.get("RAY_ADDRESS")
    ray.init(
        address=address or "local",
        num_cpus=None if address else workers,
        include_dashboard=None if address else False,
        log_to_driver=False,
        runtime_env={"env_vars": variables},
    )
    executor = RayPipelineExecutor(
        [step],
        tasks=ranks,
        mem_per_cpu_gb=0,  # a reservation of memory that a small machine could never grant
        logging_dir=str(attempt / "datatrove"),
        skip_completed=False,
    )
    try:
        executor.run()
    finally:
        ray.shutdown()


_ENGINES = {"datatrove-local": _run_datatrove, "ray": _run_ray}
