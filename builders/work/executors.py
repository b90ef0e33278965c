"""Engines that make a build's shards in ranks: datatrove on this machine, on Slurm or on Ray.

A rank reads the source itself and runs the chunks dealt to it, so nothing but a plan travels. The
shards in the work folder are all that comes of it; whoever builds then finds them stored and only
gathers, hence the same bytes for any engine and any number of ranks. All machines have to share the
work folder, the source and this code.

Each attempt has a folder of its own, ``ranks/0001`` and so on: in a used one datatrove would skip
the ranks it calls complete. What went wrong in a rank lies there under ``failures``, as datatrove
itself only logs it. A first failure, or a file ``stop``, ends each rank after its present chunk.
"""

from __future__ import annotations

import functools
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
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Literal, NoReturn

from tqdm import tqdm

from builders.work.shards import Job, Synthetic, stored
from safe_stepwise.errors import UserError
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.progress import counts

ENGINES = ("local", "datatrove-local", "slurm", "ray")

ROOT = Path(__file__).parents[2]
"""What has to be on the ranks' path: only ``safe_stepwise`` is installed."""

PATIENCE = 30.0
"""Seconds for which a rank's process may be gone without a word: Ray starts some again itself."""


@dataclass(frozen=True, slots=True)
class Slurm:
    """Where and how long; any other option is an environment variable, say ``SBATCH_ACCOUNT``."""

    partition: str | None = None
    time: str = "24:00:00"


@dataclass(frozen=True, slots=True)
class Engine:
    """One of `ENGINES` but ``local``, into how many ranks it cuts the work, how many run at once.

    ``workers`` counts processes of this machine; how many ranks a cluster runs is its own affair.
    """

    name: str
    ranks: int
    workers: int
    slurm: Slurm = Slurm()


@dataclass(frozen=True, slots=True)
class Work:
    """The chunks to make and how; picklable, as it goes to the ranks.

    ``jobs`` yields the same chunks at every call. ``process`` makes the shard of one; ``close``
    frees, at a rank's end, what that has opened. ``folder`` holds the attempts, and ``home`` is the
    folder in which relative paths are meant.
    """

    jobs: Callable[[], Iterable[Job]]
    process: Callable[[Job], object]
    close: Callable[[], object]
    folder: Path
    title: str
    home: Path


class Submitted(Exception):
    """Work was handed to a scheduler, and there is nothing to gather yet: what to tell the user."""


class RankError(Exception):
    """A fault of ours in a rank; the message holds its traceback."""


def prepare(work: Work, engine: Engine) -> int:
    """Have ranks make every shard that is owed; returns how many rows the source has.

    Raises ``UserError`` and ``OSError`` of any rank as its own, ``RankError`` for any other error,
    and ``Submitted`` when the shards will only be there later.
    """
    _require(engine)
    survey = _survey(work)
    if survey.owed and engine.name == "slurm":
        _with_slurm(work, engine, survey)
    elif survey.owed:
        _with_processes(work, engine, survey)
    return survey.rows


# What is owed


@dataclass(frozen=True, slots=True)
class _Chunk:
    number: int
    shard: Path
    rows: int


@dataclass(frozen=True, slots=True)
class _Survey:
    rows: int
    owed: tuple[_Chunk, ...]


def _survey(work: Work) -> _Survey:
    """Read the source through, which also finds one that is damaged before work is spent on it."""
    rows, owed = 0, []
    for number, job in enumerate(work.jobs()):
        count = job.rows.rows if isinstance(job.rows, Synthetic) else len(job.rows)
        rows += count
        shard = stored(job.path)
        if shard is not None and shard.settled:
            work.process(job)  # it is there, but it may hold what ends the build
        else:
            owed.append(_Chunk(number, job.path, count))
    return _Survey(rows, tuple(owed))


def _missing(chunks: Sequence[_Chunk]) -> list[_Chunk]:
    """Those without a shard; one whose replies failed again is as good as it gets this time."""
    made = set(os.listdir(chunks[0].shard.parent)) if chunks else set()
    return [chunk for chunk in chunks if chunk.shard.name not in made]


def _require(engine: Engine) -> None:
    if engine.name not in ENGINES[1:]:
        raise ValueError(f"no distributed engine {engine.name!r}")
    for module in ("datatrove", "ray") if engine.name == "ray" else ("datatrove",):
        try:
            importlib.import_module(module)
        except ImportError:
            raise UserError(
                f"--engine {engine.name} needs {module}: "
                "pip install -e '.[distributed]', or leave --engine out"
            ) from None


# A rank


@dataclass(frozen=True, slots=True)
class _Failure:
    """What ended a rank, in the form in which it crosses machines."""

    kind: Literal["mistake", "system", "fault"]
    message: str
    errno: int = 0
    filename: str | None = None

    @classmethod
    def of(cls, error: Exception) -> _Failure:
        if isinstance(error, UserError):
            return cls("mistake", str(error))
        if isinstance(error, OSError) and error.errno is not None:
            name = None if error.filename is None else str(error.filename)
            return cls("system", error.strerror or str(error), error.errno, name)
        return cls("fault", "".join(traceback.format_exception(error)))

    def error(self) -> Exception:
        if self.kind == "mistake":
            return UserError(self.message)
        if self.kind == "system":
            return OSError(self.errno, self.message, self.filename)
        return RankError(f"in a rank:\n{self.message}")


def _run_rank(
    work: Work, numbers: tuple[int, ...], attempt: Path, data: object, rank: int, ranks: int
) -> None:
    """One rank, as datatrove calls it, makes each ``ranks``-th of the chunks ``numbers``."""
    running = attempt / "running" / f"{rank:05d}"
    mine = numbers[rank::ranks]
    number = mine[0]
    try:
        _go_home(work)
        running.write_text(f"{socket.gethostname()} {os.getpid()}")
        for number, job in islice(enumerate(work.jobs()), mine[-1] + 1):
            if number in mine:
                if _is_stopped(attempt):
                    return
                work.process(job)
    except Exception as error:
        # Noted under the chunk's number, so that the source's first mistake is the one reported.
        content = json.dumps(asdict(_Failure.of(error))).encode()
        write_atomically(attempt / "failures" / f"{number:09d}-{rank:05d}.json", content)
        raise
    finally:
        work.close()
        running.unlink(missing_ok=True)


def _go_home(work: Work) -> None:
    try:
        os.chdir(work.home)
    except OSError as error:
        raise UserError(
            f"{work.home}: not on {socket.gethostname()} ({error.strerror}); all machines need the "
            "same files at the same paths"
        ) from None


def _is_stopped(attempt: Path) -> bool:
    return (attempt / "stop").exists() or any((attempt / "failures").iterdir())


def _new_attempt(work: Work) -> Path:
    numbers = [int(path.name) for path in (work.folder / "ranks").glob("[0-9]*")]
    attempt = work.folder.absolute() / "ranks" / f"{max(numbers, default=0) + 1:04d}"
    for name in ("running", "failures"):
        (attempt / name).mkdir(parents=True)
    return attempt


def _first_failure(attempt: Path) -> Exception | None:
    for file in sorted((attempt / "failures").glob("*.json")):
        return _Failure(**json.loads(file.read_text(encoding="utf-8"))).error()
    return None


def _step(work: Work, survey: _Survey, attempt: Path) -> Callable[..., None]:
    numbers = tuple(chunk.number for chunk in survey.owed)
    return functools.partial(_run_rank, work, numbers, attempt)


# Ranks that this command waits for


def _with_processes(work: Work, engine: Engine, survey: _Survey) -> None:
    """Run datatrove or Ray in a process of its own, which leaves nothing running behind.

    Beside ours it may log and catch signals as it likes, and its many helpers form one group.
    """
    attempt = _new_attempt(work)
    ranks = min(engine.ranks, len(survey.owed))
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    run = {"datatrove-local": _run_datatrove, "ray": _run_ray}[engine.name]
    arguments = (run, _step(work, survey, attempt), ranks, engine.workers, attempt, sender)
    launcher = context.Process(target=_launch, args=arguments)
    launcher.start()
    sender.close()
    try:
        _watch(launcher, work, survey, attempt)
    finally:
        _end(launcher, attempt)
    failure = _first_failure(attempt)
    if failure is None and receiver.poll():
        with suppress(EOFError):
            failure = receiver.recv().error()
    if failure is not None:
        raise failure
    missing = len(_missing(survey.owed))
    if missing:
        raise RankError(
            f"{missing} of {len(survey.owed)} chunks were not made and no rank said why (exit "
            f"status {launcher.exitcode}); the log is {attempt / 'engine.log'}"
        )


def _watch(
    launcher: multiprocessing.process.BaseProcess, work: Work, survey: _Survey, attempt: Path
) -> None:
    """Move the bar until the launcher ends; raises ``UserError`` for a rank that was killed."""
    rows = sum(chunk.rows for chunk in survey.owed)
    cached = survey.rows - rows
    gone: dict[str, float] = {}
    with tqdm(total=survey.rows, initial=cached, unit="row", desc=work.title, delay=1) as bar:
        while launcher.is_alive():
            launcher.join(0.5)
            owed = sum(chunk.rows for chunk in _missing(survey.owed))
            bar.set_postfix_str(counts(rows - owed, cached, owed), refresh=False)
            bar.update(survey.rows - owed - bar.n)
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


def _end(launcher: multiprocessing.process.BaseProcess, attempt: Path) -> None:
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


def _launch(
    run: Callable[[Callable[..., None], int, int, Path], None],
    step: Callable[..., None],
    ranks: int,
    workers: int,
    attempt: Path,
    sender: Connection,
) -> None:
    """The launcher: run an engine with its output in a file; errors go to the parent."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log = os.open(attempt / "engine.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.dup2(log, 1)
    os.dup2(log, 2)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_die_after, args=(parent.sentinel,), daemon=True).start()
    try:
        run(step, ranks, workers, attempt)
    except Exception as error:
        traceback.print_exc()
        sender.send(_Failure.of(error))
        raise SystemExit(1) from None


def _die_after(sentinel: int) -> None:
    wait([sentinel])
    os.killpg(0, signal.SIGKILL)


def _run_datatrove(step: Callable[..., None], ranks: int, workers: int, attempt: Path) -> None:
    from datatrove.executor.local import LocalPipelineExecutor

    executor = LocalPipelineExecutor(
        [step],
        tasks=ranks,
        workers=min(ranks, workers),
        logging_dir=str(attempt / "datatrove"),
        skip_completed=False,
    )
    executor.run()


def _run_ray(step: Callable[..., None], ranks: int, workers: int, attempt: Path) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray
    from datatrove.executor.ray import RayPipelineExecutor

    # The temporary folder, because datatrove's ranks log to one fixed name in it.
    variables = {"PYTHONPATH": _python_path(), "TMPDIR": str(attempt / "tmp")}
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


def _python_path() -> str:
    return os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))


# Ranks that run after this command


def _with_slurm(work: Work, engine: Engine, survey: _Survey) -> None:
    """Submit what is owed, or say how the last submission stands.

    Returns when that has made every shard, even ones in which replies failed.
    """
    if shutil.which("sbatch") is None:
        raise UserError(
            "--engine slurm: there is no sbatch here; run this on a login node of a Slurm cluster, "
            "or choose --engine datatrove-local"
        )
    submissions = sorted((work.folder / "ranks").glob("*/submitted.json"))
    if submissions:
        _report(submissions[-1], survey)
    else:
        _submit(work, engine, survey)


def _report(submission: Path, survey: _Survey) -> None:
    job = json.loads(submission.read_text(encoding="utf-8"))["job"]
    missing = len(_missing(survey.owed))
    if not missing:
        return
    if _is_queued(job):
        raise UserError(
            f"Slurm job {job} still has {missing} chunks to make; run the same command again when "
            f"it has ended (squeue -j {job} tells, scancel {job} ends it)"
        )
    # Said once: the next run submits what is owed.
    submission.rename(submission.with_name("ended.json"))
    failure = _first_failure(submission.parent)
    if failure is not None:
        raise failure
    raise UserError(
        f"Slurm job {job} has ended with {missing} chunks owed and no word why (its time limit?); "
        f"look into {submission.parent / 'slurm'}, and run the same command again to submit them"
    )


def _submit(work: Work, engine: Engine, survey: _Survey) -> NoReturn:
    from datatrove.executor.slurm import SlurmPipelineExecutor
    from loguru import logger

    partition = engine.slurm.partition or os.environ.get("SBATCH_PARTITION")
    if partition is None:
        raise UserError(
            "--engine slurm: name a partition, with --slurm-partition; sinfo lists them"
        )
    logger.disable("datatrove")
    attempt = _new_attempt(work)
    ranks = min(engine.ranks, len(survey.owed))
    executor = SlurmPipelineExecutor(
        [_step(work, survey, attempt)],
        tasks=ranks,
        time=engine.slurm.time,
        partition=partition,
        qos=None,  # datatrove's "normal" is not known to every cluster
        job_name=f"safe-{work.title.replace(' ', '-')}",
        env_command=f"export PYTHONPATH='{_python_path()}' PATH='{_bin()}':\"$PATH\"",
        job_id_retriever=_job_id,
        logging_dir=str(attempt / "datatrove"),
        slurm_logs_folder=str(attempt / "slurm"),
        skip_completed=False,
    )
    # Else a second job waits for the first, for ever when that fails.
    executor.launch_merge_stats = _no_statistics
    try:
        executor.launch_job()
    except (OSError, subprocess.CalledProcessError) as error:
        raise UserError(f"sbatch did not take the job ({error}); see what it says above") from None
    content = json.dumps({"job": executor.job_id, "chunks": len(survey.owed), "ranks": ranks})
    write_atomically(attempt / "submitted.json", content.encode())
    raise Submitted(
        f"submitted Slurm job {executor.job_id}: {work.title}, {len(survey.owed)} chunks in "
        f"{ranks} ranks; its output will be in {attempt / 'slurm'}\n"
        "When it has ended (squeue tells), run the same command again to gather the result."
    )


def _bin() -> str:
    return str(Path(sys.executable).parent)


def _no_statistics() -> None:
    """In place of datatrove's."""


def _job_id(output: str) -> str:
    """Of what sbatch says, which may go on with a cluster's name.

    >>> _job_id("Submitted batch job 71 on cluster red")
    '71'
    """
    found = re.search(r"\d+", output)
    if found is None:
        raise UserError(f"sbatch named no job: {output!r}")
    return found[0]


def _is_queued(job: str) -> bool:
    try:
        asked: Any = subprocess.run(
            ["squeue", "--noheader", "--jobs", job], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise UserError(
            f"squeue cannot be run ({error.strerror}), so who knows of job {job}"
        ) from None
    if asked.returncode and "invalid job id" not in asked.stderr.lower():
        raise UserError(f"squeue does not say how job {job} stands: {asked.stderr.strip()}")
    return bool(asked.stdout.strip()) and not asked.returncode
