"""Runs a build's chunks: in processes of this command, or as ranks of datatrove, Slurm or Ray.

Ranks of datatrove or Ray on this machine run below one launcher process. It may log and catch signals as it likes, and
its helpers form one process group, so that ending the group leaves nothing running.
"""

import importlib
import json
import multiprocessing
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures import wait as wait_for_futures
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeVar

from builders.work.plans import Plan, Slurm
from builders.work.ranks import J, RankError, Survey, Work, code_path, first_error, log_error, new_attempt, rank_step
from builders.work.shards import Shard, process, read_stored
from safe_stepwise.errors import UserError
from safe_stepwise.store import event_loop, files
from safe_stepwise.store.progress import counts, show_progress


class Submitted(Exception):
    """Raised when a scheduler got the work, so that there is no result yet; the message says how to continue."""


@dataclass(slots=True)
class Standing:
    """The progress of a build, in rows of its input."""

    finished: int = 0
    cached: int = 0
    failed: int = 0
    failed_label: str = "failed"
    """The progress bar's word for failed rows."""


def results(
    work: Work[J], plan: Plan, rows: Callable[[], int | None], standing: Standing
) -> Generator[tuple[J, Shard[Any]], None, None]:
    """Yield each chunk with its shard, in order, and show a progress bar.

    ``rows`` returns the number of input rows, or None. ``standing`` is updated, but for failed rows. Raises errors as
    a rank did, ``RankError`` for a fault in one, and ``Submitted`` when a scheduler will make the shards later.
    """
    if plan.engine == "local":
        total, is_cpu_bound = rows(), work.annotator.is_cpu_bound
        shards = run_in_order(process, work.jobs(), workers=plan.workers, is_cpu_bound=is_cpu_bound)
    else:
        total = prepare(work, plan)
        # A shard of a rank counts even where a reply failed again.
        shards = ((job, read_stored(job, job.path) or process(job)) for job in work.jobs())

    def describe() -> str:
        pending = "?" if total is None else max(total - standing.finished, 0)
        new, failed = standing.finished - standing.cached, {standing.failed_label: standing.failed}
        return "; ".join(filter(None, [counts(new, standing.cached, pending, **failed), work.annotator.progress()]))

    with show_progress(work.title, work.unit, total, lambda: standing.finished, describe), closing(shards):
        for job, shard in shards:
            yield job, shard
            standing.finished += job.size
            standing.cached += job.size if shard.cached else 0


def prepare(work: Work[Any], plan: Plan) -> int:
    """Let ranks make every pending shard, and return the number of the source's rows; errors as in `results`."""
    _require(plan.engine)
    survey = Survey.read(work)
    ranks = min(plan.ranks or plan.workers, len(survey.pending))
    if survey.pending and plan.engine == "slurm":
        _run_on_slurm(work, plan.slurm, ranks, survey)
    elif survey.pending:
        run_ranks(work, plan, ranks, survey)
    return survey.rows


def _require(engine: str) -> None:
    for module in ("datatrove", "ray") if engine == "ray" else ("datatrove",):
        try:
            importlib.import_module(module)
        except ImportError:
            raise UserError(
                f"--engine {engine} needs {module}: pip install -e '.[distributed]', or leave --engine out"
            ) from None


def _run_on_slurm(work: Work[Any], slurm: Slurm, ranks: int, survey: Survey) -> None:
    """Submit the pending chunks, or raise with the last submission's state; return once it has made every shard."""
    if shutil.which("sbatch") is None:
        raise UserError(
            "--engine slurm: there is no sbatch here; run this on a login node of a Slurm cluster, "
            "or choose --engine datatrove-local"
        )
    submissions = sorted((work.folder / "ranks").glob("*/submitted.json"))
    if not submissions:
        _submit(work, slurm, ranks, survey)
    submission, missing = submissions[-1], len(survey.missing())
    if not missing:
        return
    job = json.loads(submission.read_text(encoding="utf-8"))["job"]
    if _is_queued(job):
        raise UserError(
            f"Slurm job {job} still has {missing} chunks to make; run the same command again when "
            f"it has ended (squeue -j {job} tells, scancel {job} ends it)"
        )
    # Reported once: the next run submits the pending chunks.
    submission.rename(submission.with_name("ended.json"))
    raise first_error(submission.parent) or UserError(
        f"Slurm job {job} has ended with {missing} chunks owed and no word why (its time limit?); "
        f"look into {submission.parent / 'slurm'}, and run the same command again to submit them"
    )


def _submit(work: Work[Any], slurm: Slurm, ranks: int, survey: Survey) -> NoReturn:
    from datatrove.executor.slurm import SlurmPipelineExecutor
    from loguru import logger

    partition = slurm.partition or os.environ.get("SBATCH_PARTITION")
    if partition is None:
        raise UserError("--engine slurm: name a partition, with --slurm-partition; sinfo lists them")
    logger.disable("datatrove")
    attempt = new_attempt(work)
    variables = f"PYTHONPATH='{code_path()}' PATH='{Path(sys.executable).parent}':\"$PATH\""
    executor = SlurmPipelineExecutor(
        [rank_step(work, survey, attempt)],
        tasks=ranks,
        time=slurm.time,
        partition=partition,
        qos=None,  # not every cluster has datatrove's "normal"
        job_name=f"safe-{work.title.replace(' ', '-')}",
        env_command=f"export {variables}",
        job_id_retriever=lambda output: re.findall(r"\d+", output)[0],  # a cluster's name may follow
        logging_dir=str(attempt / "datatrove"),
        slurm_logs_folder=str(attempt / "slurm"),
        skip_completed=False,
    )
    # Otherwise a second job waits for the first, for ever if the first fails.
    executor.launch_merge_stats = lambda: None
    try:
        executor.launch_job()
    except (OSError, subprocess.CalledProcessError) as error:
        raise UserError(f"sbatch did not take the job ({error}); see what it says above") from None
    content = json.dumps({"job": executor.job_id, "chunks": len(survey.pending), "ranks": ranks})
    files.write_atomically(attempt / "submitted.json", content.encode())
    raise Submitted(
        f"submitted Slurm job {executor.job_id}: {work.title}, {len(survey.pending)} chunks in "
        f"{ranks} ranks; its output will be in {attempt / 'slurm'}\n"
        "When it has ended (squeue tells), run the same command again to gather the result."
    )


def _is_queued(job: str) -> bool:
    queue = subprocess.run(["squeue", "--noheader", "--jobs", job], capture_output=True, text=True, check=False)
    if queue.returncode and "invalid job id" not in queue.stderr.lower():
        raise UserError(f"squeue does not say how job {job} stands: {queue.stderr.strip()}")
    return bool(queue.stdout.strip()) and not queue.returncode


PATIENCE = 30.0
"""Seconds for which a rank's process may be gone without a report: Ray restarts some by itself."""

Step = Callable[..., None]


def run_ranks(work: Work[Any], plan: Plan, ranks: int, survey: Survey) -> None:
    """Let an engine make the pending chunks on this machine; raise the first error of a rank or of the engine."""
    attempt = new_attempt(work)
    arguments = (_ENGINES[plan.engine], rank_step(work, survey, attempt), ranks, plan.workers, attempt)
    launcher = multiprocessing.get_context("spawn").Process(target=_launch, args=arguments)
    launcher.start()
    try:
        _watch(launcher, work, survey, attempt)
    finally:
        _end(launcher, attempt)
    if (failure := first_error(attempt)) is not None:
        raise failure
    if missing := len(survey.missing()):
        raise RankError(
            f"{missing} of {len(survey.pending)} chunks were not made and no rank said why (exit "
            f"status {launcher.exitcode}); the log is {attempt / 'engine.log'}"
        )


def _watch(launcher: BaseProcess, work: Work[Any], survey: Survey, attempt: Path) -> None:
    """Update the progress bar until the launcher ends; raise ``UserError`` if a rank was killed."""
    rows = sum(size for _, size in survey.pending.values())
    cached = survey.rows - rows
    killed_since: dict[str, float] = {}

    def describe() -> str:
        pending = sum(survey.missing())
        return counts(rows - pending, cached, pending)

    with show_progress(work.title, work.unit, survey.rows, lambda: survey.rows - sum(survey.missing()), describe):
        while launcher.is_alive():
            launcher.join(0.5)
            killed = _killed(attempt)
            killed_since = {rank: killed_since.get(rank, time.monotonic()) for rank in killed}
            if any(time.monotonic() - since >= PATIENCE for since in killed_since.values()):
                raise UserError(
                    f"rank {min(killed_since)} was killed, most likely for want of memory; run the same "
                    "command again, with fewer --workers: it resumes"
                )


def _killed(attempt: Path) -> set[str]:
    """Ranks of this machine whose process is gone; datatrove's pool would wait for them forever."""
    killed = set()
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
                killed.add(f"{file.name} (process {process})")
    return killed


def _end(launcher: BaseProcess, attempt: Path) -> None:
    """Let the ranks finish their present chunks, or kill all processes if a rank was killed."""
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
    """Run an engine in the launcher process, with its output in a file."""
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
        log_error(attempt, "engine", error)  # after any rank's, which begin with a digit
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
    variables = {"PYTHONPATH": code_path(), "TMPDIR": str(attempt / "tmp")}
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


T = TypeVar("T")
R = TypeVar("R")


def run_in_order(
    process: Callable[[T], R], jobs: Iterable[T], *, workers: int, is_cpu_bound: bool
) -> Generator[tuple[T, R], None, None]:
    """Run ``process`` on all jobs and yield (job, result) in the order of the jobs, for any ``workers`` >= 1.

    CPU-bound work runs in processes, other work in threads; jobs are read only a few ahead. A single job runs here: a
    process takes seconds to start. Raises ``UserError`` when a worker process was killed, and whatever ``process``
    raises.
    """
    remaining = iter(jobs)
    first = list(islice(remaining, 2))
    jobs = chain(first, remaining)
    if workers == 1 or len(first) < 2:
        for job in jobs:
            yield job, process(job)
        return
    pending: deque[tuple[T, Future[R]]] = deque()
    pool = _pool(workers, is_cpu_bound)
    try:
        for job in jobs:
            with _blocking_ctrl_c():
                pending.append((job, pool.submit(process, job)))
            if len(pending) >= 2 * workers + 2:
                yield _next_result(pending)
        while pending:
            yield _next_result(pending)
    except BrokenProcessPool:
        raise UserError(
            "a worker process was killed, most likely for want of memory; run the same command "
            "again, with fewer --workers: it resumes"
        ) from None
    finally:
        if isinstance(pool, ThreadPoolExecutor):
            _abandon([future for _, future in pending])
        pool.shutdown(wait=True, cancel_futures=True)


def _pool(workers: int, is_cpu_bound: bool) -> Executor:
    if not is_cpu_bound:
        return ThreadPoolExecutor(workers)
    # Spawned, because this process has threads (progress bar, Arrow), which a fork may deadlock.
    return ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=end_with_parent,
        initargs=(partial(os._exit, 1),),
    )


@contextmanager
def _blocking_ctrl_c() -> Iterator[None]:
    """Delay Ctrl-C while a worker starts, so that the worker never gets it.

    A worker that got it during its imports would print a traceback and break the pool; so would a worker whose parent
    is interrupted while it sends the job. The worker inherits the signal mask; the handler is for this process, where
    another thread may get the signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[tuple[int, FrameType | None]] = []
    handler = signal.signal(signal.SIGINT, lambda signum, frame: received.append((signum, frame)))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
        if received and callable(handler):
            handler(*received[0])


def _next_result(pending: deque[tuple[T, Future[R]]]) -> tuple[T, R]:
    job, future = pending[0]
    result = future.result()
    pending.popleft()
    return job, result


def _abandon(running: list[Future[Any]]) -> None:
    """End threads that wait for a server; after an interrupt they would continue to wait."""
    for future in running:
        future.cancel()
    while wait_for_futures(running, timeout=0.05).not_done:
        event_loop.cancel_all()


def end_with_parent(end: Callable[[], object]) -> None:
    """Call ``end`` when the parent is gone, so that this process does not outlive it."""

    def call_after(sentinel: int) -> None:
        wait([sentinel])
        end()

    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=call_after, args=(parent.sentinel,), daemon=True).start()
