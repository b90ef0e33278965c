"""Who makes a build's shards: processes of this command, or ranks (datatrove's, Slurm's, Ray's).

Ranks on this machine, of datatrove or Ray, run in a process of its own, which leaves nothing running behind: beside
ours it may log and catch signals as it likes, and its many helpers form one group.
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
import time
import traceback
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NoReturn

from builders.work.plans import Plan, Slurm
from builders.work.ranks import J, RankError, Survey, Work, first_failure, new_attempt, note, python_path, rank_of
from builders.work.shards import Shard, process, stored
from builders.work.workers import end_with_parent, in_order
from safe_stepwise.errors import UserError
from safe_stepwise.store import progress
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.progress import counts, telling


class Submitted(Exception):
    """Work was handed to a scheduler, and there is nothing to gather yet: what to tell the user."""


@dataclass(slots=True)
class Standing:
    """How a build stands, in rows of its input; ``failed`` are those that came to nothing."""

    done: int = 0
    cached: int = 0
    failed: int = 0
    word: str = "failed"
    """What the failed ones are called."""


def results(
    work: Work[J], plan: Plan, rows: Callable[[], int | None], standing: Standing
) -> Generator[tuple[J, Shard[Any]], None, None]:
    """Each chunk with its shard, in order; a progress bar tells how it stands.

    ``rows`` counts those of the input, where that can be told beforehand. ``standing`` counts as the results are
    drawn, but for what has failed, which its owner counts.

    Raises ``UserError`` and ``OSError`` of any rank as its own, ``RankError`` for any other error in one, and
    ``Submitted`` when the shards will only be there later.
    """
    if plan.engine == "local":
        total, own = rows(), work.annotator.own_processes
        made = in_order(process, work.jobs(), workers=plan.workers, own_processes=own)
    else:
        total = prepare(work, plan)
        # What ranks have made is gathered even where a reply failed again.
        made = ((job, stored(job, job.path) or process(job)) for job in work.jobs())

    def shown() -> str:
        owed = "?" if total is None else max(total - standing.done, 0)
        done = counts(standing.done - standing.cached, standing.cached, owed, **{standing.word: standing.failed})
        return "; ".join(filter(None, [done, work.annotator.progress()]))

    with telling(work.title, work.unit, total, lambda: standing.done, shown), closing(made):
        for job, shard in made:
            yield job, shard
            standing.done += job.size
            standing.cached += job.size if shard.cached else 0


def prepare(work: Work[Any], plan: Plan) -> int:
    """Have ranks make every shard that is owed; returns how many rows the source has.

    Raises as `results`.
    """
    _require(plan.engine)
    surveyed = Survey.of(work)
    ranks = min(plan.ranks or plan.workers, len(surveyed.owed))
    if surveyed.owed and plan.engine == "slurm":
        _with_slurm(work, plan.slurm, ranks, surveyed)
    elif surveyed.owed:
        wait_for(work, plan, ranks, surveyed)
    return surveyed.rows


def _require(engine: str) -> None:
    for module in ("datatrove", "ray") if engine == "ray" else ("datatrove",):
        try:
            importlib.import_module(module)
        except ImportError:
            raise UserError(
                f"--engine {engine} needs {module}: pip install -e '.[distributed]', or leave --engine out"
            ) from None


# Slurm, whose ranks run after this command


def _with_slurm(work: Work[Any], slurm: Slurm, ranks: int, owed: Survey) -> None:
    """Submit what is owed, or say how the last submission stands.

    Returns when that has made every shard, even ones in which replies failed.
    """
    if shutil.which("sbatch") is None:
        raise UserError(
            "--engine slurm: there is no sbatch here; run this on a login node of a Slurm cluster, "
            "or choose --engine datatrove-local"
        )
    submissions = sorted((work.folder / "ranks").glob("*/submitted.json"))
    if not submissions:
        _submit(work, slurm, ranks, owed)
    submission, missing = submissions[-1], len(owed.missing())
    if not missing:
        return
    job = json.loads(submission.read_text(encoding="utf-8"))["job"]
    if _is_queued(job):
        raise UserError(
            f"Slurm job {job} still has {missing} chunks to make; run the same command again when "
            f"it has ended (squeue -j {job} tells, scancel {job} ends it)"
        )
    # Said once: the next run submits what is owed.
    submission.rename(submission.with_name("ended.json"))
    raise first_failure(submission.parent) or UserError(
        f"Slurm job {job} has ended with {missing} chunks owed and no word why (its time limit?); "
        f"look into {submission.parent / 'slurm'}, and run the same command again to submit them"
    )


def _submit(work: Work[Any], slurm: Slurm, ranks: int, owed: Survey) -> NoReturn:
    from datatrove.executor.slurm import SlurmPipelineExecutor
    from loguru import logger

    partition = slurm.partition or os.environ.get("SBATCH_PARTITION")
    if partition is None:
        raise UserError("--engine slurm: name a partition, with --slurm-partition; sinfo lists them")
    logger.disable("datatrove")
    attempt = new_attempt(work)
    here = f"PYTHONPATH='{python_path()}' PATH='{Path(sys.executable).parent}':\"$PATH\""
    executor = SlurmPipelineExecutor(
        [rank_of(work, owed, attempt)],
        tasks=ranks,
        time=slurm.time,
        partition=partition,
        qos=None,  # datatrove's "normal" is not known to every cluster
        job_name=f"safe-{work.title.replace(' ', '-')}",
        env_command=f"export {here}",
        job_id_retriever=_job_id,
        logging_dir=str(attempt / "datatrove"),
        slurm_logs_folder=str(attempt / "slurm"),
        skip_completed=False,
    )
    # Else a second job waits for the first, for ever when that fails.
    executor.launch_merge_stats = lambda: None
    try:
        executor.launch_job()
    except (OSError, subprocess.CalledProcessError) as error:
        raise UserError(f"sbatch did not take the job ({error}); see what it says above") from None
    content = json.dumps({"job": executor.job_id, "chunks": len(owed.owed), "ranks": ranks})
    write_atomically(attempt / "submitted.json", content.encode())
    raise Submitted(
        f"submitted Slurm job {executor.job_id}: {work.title}, {len(owed.owed)} chunks in "
        f"{ranks} ranks; its output will be in {attempt / 'slurm'}\n"
        "When it has ended (squeue tells), run the same command again to gather the result."
    )


def _job_id(output: str) -> str:
    """The number in what sbatch says, which may go on with a cluster's name.

    >>> _job_id("Submitted batch job 71 on cluster red")
    '71'
    """
    number = re.search(r"\d+", output)
    if number is None:
        raise UserError(f"sbatch named no job: {output!r}")
    return number[0]


def _is_queued(job: str) -> bool:
    try:
        queue = subprocess.run(["squeue", "--noheader", "--jobs", job], capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"squeue cannot be run ({error.strerror}), so who knows of job {job}") from None
    if queue.returncode and "invalid job id" not in queue.stderr.lower():
        raise UserError(f"squeue does not say how job {job} stands: {queue.stderr.strip()}")
    return bool(queue.stdout.strip()) and not queue.returncode


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
