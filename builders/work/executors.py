"""Who makes a build's shards: processes of this command, or ranks (datatrove's, Slurm's, Ray's)."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from builders.work.processes import wait_for
from builders.work.ranks import J, Survey, Work, first_failure, new_attempt, python_path, rank_of, survey
from builders.work.shards import Shard, process, stored
from builders.work.workers import in_order
from safe_stepwise.errors import UserError
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.progress import counts, telling

EXECUTORS = ("local", "datatrove-local", "slurm", "ray")


@dataclass(frozen=True, slots=True)
class Slurm:
    """Where and how long; any other option is an environment variable, say ``SBATCH_ACCOUNT``."""

    partition: str | None = None
    time: str = "24:00:00"


class Submitted(Exception):
    """Work was handed to a scheduler, and there is nothing to gather yet: what to tell the user."""


@dataclass(frozen=True, slots=True)
class Executor:
    """One of `EXECUTORS`, how many processes of this machine it has, how many ranks share the work.

    How many ranks a cluster runs at once is its own affair.
    """

    name: str = "local"
    workers: int = 1
    ranks: int = 1
    slurm: Slurm = field(default_factory=Slurm)


@dataclass(slots=True)
class Standing:
    """How a build stands, in rows of its input; ``failed`` are those that came to nothing."""

    done: int = 0
    cached: int = 0
    failed: int = 0
    word: str = "failed"
    """What the failed ones are called."""


def results(
    work: Work[J], executor: Executor, rows: Callable[[], int | None], standing: Standing
) -> Generator[tuple[J, Shard[Any]], None, None]:
    """Each chunk with its shard, in order; a progress bar tells how it stands.

    ``rows`` counts those of the input, where that can be told beforehand. ``standing`` counts as
    the results are drawn, but for what has failed, which its owner counts.

    Raises ``UserError`` and ``OSError`` of any rank as its own, ``RankError`` for any other error
    in one, and ``Submitted`` when the shards will only be there later.
    """
    total = rows() if executor.name == "local" else prepare(work, executor)

    def told() -> str:
        owed = "?" if total is None else max(total - standing.done, 0)
        made, failed = standing.done - standing.cached, {standing.word: standing.failed}
        stands = counts(made, standing.cached, owed, **failed)
        return "; ".join(filter(None, [stands, work.annotator.progress()]))

    bar = telling(work.title, work.unit, total, lambda: standing.done, told)
    with bar, closing(_made(work, executor)) as made:
        for job, shard in made:
            yield job, shard
            standing.done += job.size
            standing.cached += job.size if shard.cached else 0


def prepare(work: Work[Any], executor: Executor) -> int:
    """Have ranks make every shard that is owed; returns how many rows the source has.

    Raises as `results`.
    """
    _require(executor)
    found = survey(work)
    ranks = min(executor.ranks, len(found.owed))
    if found.owed and executor.name == "slurm":
        _with_slurm(work, executor.slurm, ranks, found)
    elif found.owed:
        wait_for(work, executor.name, ranks, executor.workers, found)
    return found.rows


def _made(work: Work[J], executor: Executor) -> Generator[tuple[J, Shard[Any]], None, None]:
    if executor.name == "local":
        own = work.annotator.own_processes
        return in_order(process, work.jobs(), workers=executor.workers, own_processes=own)
    # What ranks have made is gathered even where a reply failed again.
    return ((job, stored(job, job.path) or process(job)) for job in work.jobs())


def _require(executor: Executor) -> None:
    for module in ("datatrove", "ray") if executor.name == "ray" else ("datatrove",):
        try:
            importlib.import_module(module)
        except ImportError:
            raise UserError(
                f"--engine {executor.name} needs {module}: pip install -e '.[distributed]', or leave --engine out"
            ) from None


# Slurm, whose ranks run after this command


def _with_slurm(work: Work[Any], slurm: Slurm, ranks: int, found: Survey) -> None:
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
        _report(submissions[-1], found)
    else:
        _submit(work, slurm, ranks, found)


def _report(submission: Path, found: Survey) -> None:
    job = json.loads(submission.read_text(encoding="utf-8"))["job"]
    missing = len(found.missing())
    if not missing:
        return
    if _is_queued(job):
        raise UserError(
            f"Slurm job {job} still has {missing} chunks to make; run the same command again when "
            f"it has ended (squeue -j {job} tells, scancel {job} ends it)"
        )
    # Said once: the next run submits what is owed.
    submission.rename(submission.with_name("ended.json"))
    failure = first_failure(submission.parent)
    if failure is not None:
        raise failure
    raise UserError(
        f"Slurm job {job} has ended with {missing} chunks owed and no word why (its time limit?); "
        f"look into {submission.parent / 'slurm'}, and run the same command again to submit them"
    )


def _submit(work: Work[Any], slurm: Slurm, ranks: int, found: Survey) -> NoReturn:
    from datatrove.executor.slurm import SlurmPipelineExecutor
    from loguru import logger

    partition = slurm.partition or os.environ.get("SBATCH_PARTITION")
    if partition is None:
        raise UserError("--engine slurm: name a partition, with --slurm-partition; sinfo lists them")
    logger.disable("datatrove")
    attempt = new_attempt(work)
    here = f"PYTHONPATH='{python_path()}' PATH='{Path(sys.executable).parent}':\"$PATH\""
    executor = SlurmPipelineExecutor(
        [rank_of(work, found, attempt)],
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
    content = json.dumps({"job": executor.job_id, "chunks": len(found.owed), "ranks": ranks})
    write_atomically(attempt / "submitted.json", content.encode())
    raise Submitted(
        f"submitted Slurm job {executor.job_id}: {work.title}, {len(found.owed)} chunks in "
        f"{ranks} ranks; its output will be in {attempt / 'slurm'}\n"
        "When it has ended (squeue tells), run the same command again to gather the result."
    )


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
        raise UserError(f"squeue cannot be run ({error.strerror}), so who knows of job {job}") from None
    if asked.returncode and "invalid job id" not in asked.stderr.lower():
        raise UserError(f"squeue does not say how job {job} stands: {asked.stderr.strip()}")
    return bool(asked.stdout.strip()) and not asked.returncode
